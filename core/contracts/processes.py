"""`ProcessPool`: processes that share tasks with this one; whatever becomes of them, the results are those of this one.

They are started anew: a forked process would inherit the locks of the threads of this one. One that is killed leaves
its tasks to this process, and Ctrl-C reaches this process alone, which ends them.
"""

from __future__ import annotations

import logging
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from .errors import PrejudgeError

LOG = logging.getLogger(__name__)
AHEAD = 2
"""Tasks that a process is given at once, so that it does not wait for the next."""
KEPT = 4
"""Tasks of each process of which the results may wait for those before."""
Opened = AbstractContextManager[tuple[Any, ...]]
"""What a process opens for its tasks: the values that come before those of each."""
R = TypeVar("R")


class Task:
    """A call, and what came of it."""

    def __init__(self, work: Callable[..., Any], values: tuple[Any, ...]) -> None:
        self.work, self.values = work, values
        self.done = self.left = False
        """Left: another process could not do it. This one does when its turn comes, and meets the error itself."""
        self.found: Any = None
        self.error: Exception | None = None

    def end(self, found: Any) -> None:
        """Note the result."""
        self.found, self.done, self.values = found, True, ()

    def fail(self, error: Exception) -> None:
        """Note what was raised."""
        self.error, self.done = error, True


class Helper:
    """A process, and the tasks that it has."""

    def __init__(self, opened: Callable[..., Opened], *given: Any) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, opened, given), daemon=True)
        self.tasks: deque[Task] = deque()
        with _uninterrupted():
            self._process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        """Give it a task more; `pipe` has the result."""
        self.tasks.append(task)
        with suppress(OSError):  # it ended: that is noticed where its results are read
            self.pipe.send((task.work, task.values))

    def does(self, work: Callable[..., Any], *values: Any) -> bool:
        """Let it do something while it has no task, and return whether it could."""
        with suppress(OSError):
            self.pipe.send((work, values))
            return self.answers()
        return False

    def answers(self) -> bool:
        """Wait until it has opened what it needs, or done something; return whether it could."""
        try:
            return bool(self.pipe.recv()[0])
        except (EOFError, OSError):
            return False

    def close(self) -> None:
        """End it, whatever it does."""
        self.pipe.close()
        self._process.terminate()
        self._process.join()


class ProcessPool:
    """This process and its helpers."""

    def __init__(self, helpers: Iterable[Helper] = (), opened: tuple[Any, ...] = ()) -> None:
        """Take the helpers, and the values that come before those of each task which this process does."""
        self._helpers, self._opened = list(helpers), opened

    def map(self, work: Callable[..., R], tasks: Iterable[tuple[Any, ...]], kept: int = KEPT) -> Iterator[R]:
        """Yield what `work` returns for the values of each task, in the order of the tasks.

        `work` is a function of a module. This process works, too. What a task or `tasks` raises is raised after the
        results before it, as if this process had done all.

        Args:
            work: what to do.
            tasks: the values of each call.
            kept: tasks of each process of which the results may wait for those before.
        """
        coming, waiting = _tasks(work, tasks), deque[Task]()
        most = kept * (1 + len(self._helpers))
        while True:
            for helper in self._helpers:
                while len(helper.tasks) < AHEAD and len(waiting) < most and (task := next(coming, None)) is not None:
                    waiting.append(task)
                    if not task.done:
                        helper.give(task)
            self._collect(0)
            if waiting and (waiting[0].done or waiting[0].left):
                yield self._end(waiting.popleft())
            elif len(waiting) < most and (task := next(coming, None)) is not None:
                waiting.append(task)
                if not task.done:
                    self._do(task)
            elif waiting:
                self._collect(None)
            else:
                return

    def _call(self, work: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        return work(*self._opened, *values)

    def _do(self, task: Task) -> None:
        try:
            task.end(self._call(task.work, task.values))
        except Exception as error:
            task.fail(error)

    def _end(self, task: Task) -> Any:
        if not task.done:
            self._do(task)
        if task.error is not None:
            raise task.error
        return task.found

    def _collect(self, seconds: float | None) -> None:
        """Take the results that helpers have, or wait for some."""
        busy = {helper.pipe: helper for helper in self._helpers if helper.tasks}
        for pipe in wait(list(busy), seconds) if busy else ():
            helper = busy[pipe]  # type: ignore[index]
            try:
                done, result = helper.pipe.recv()
            except (EOFError, OSError):
                LOG.info("a process that shares the work ended; its part is done by this one")
                self._helpers.remove(helper)
                for task in helper.tasks:
                    task.left = True
            else:
                task = helper.tasks.popleft()
                if done:
                    task.end(result)
                else:
                    task.left = True


@contextmanager
def start_helpers(count: int, opened: Callable[..., Opened], *values: Any) -> Iterator[list[Helper]]:
    """Yield helpers, but for those that could not open what they need; they end with the block.

    Args:
        count: how many; none if it is below 1.
        opened: what each opens; a function of a module.
        values: its arguments.
    """
    helpers = list[Helper]()
    try:
        for _ in range(count):
            helpers.append(Helper(opened, *values))
        yield [helper for helper in helpers if helper.answers()]
    finally:
        for helper in helpers:
            helper.close()


def _tasks(work: Callable[..., Any], every: Iterable[tuple[Any, ...]]) -> Iterator[Task]:
    try:
        for values in every:
            yield Task(work, values)
    except Exception as error:
        task = Task(work, ())
        task.fail(error)
        yield task


def _serve(pipe: Connection, opened: Callable[..., Opened], given: tuple[Any, ...]) -> None:
    """Be a helper, until the other end of the pipe is closed: also if the process there was killed.

    Tasks and results are passed on while one is done. Else a large task and a large result would wait for each other
    forever, and a helper for whoever is not ready to take its result.
    """
    tasks, results = SimpleQueue[Any](), SimpleQueue[Any]()
    Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    Thread(target=_send, args=(pipe, results), daemon=True).start()
    with suppress(OSError, PrejudgeError), opened(*given) as before:
        results.put((True, None))
        while (task := tasks.get()) is not None:
            work, values = task
            results.put(_result(work, (*before, *values)))


def _receive(pipe: Connection, tasks: SimpleQueue[Any]) -> None:
    with suppress(EOFError, OSError):
        while True:
            tasks.put(pipe.recv())
    tasks.put(None)


def _send(pipe: Connection, results: SimpleQueue[Any]) -> None:
    with suppress(OSError):
        while True:
            pipe.send(results.get())


def _result(work: Callable[..., Any], values: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, work(*values)
    except Exception:
        return False, None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let a process that is started here never see Ctrl-C, which ends this one, and it with it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, which unblocks the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
