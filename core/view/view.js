"use strict";
// Every page works without this script. With it, a link or form with `data-part` replaces the content without a new
// page, and the next page of a table is fetched before its end is seen.
(() => {
  const MOST_PAGES = 40; // of 50 rows: more make a browser slow; the pager goes on from there
  let asked = 0;

  async function fetched(url) {
    const answer = await fetch(url, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  async function show(url, kept) {
    const turn = ++asked;
    const main = document.querySelector("main");
    main.setAttribute("aria-busy", "true");
    const open = document.querySelector(".facets")?.open;
    try {
      const page = await fetched(url);
      if (turn !== asked) return; // a later click was faster
      const next = page.querySelector("main");
      if (page.querySelector("progress")) return location.assign(url); // an index is made: its page loads itself anew
      const focus = document.activeElement?.getAttribute("aria-label");
      main.replaceWith(document.adoptNode(next));
      document.title = page.title;
      if (!kept) history.pushState(null, "", url);
      const facets = document.querySelector(".facets");
      if (facets && open !== undefined) facets.open = open;
      if (focus) document.querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus();
      setUp();
    } catch {
      location.assign(url);
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-part]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    show(link.href);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-part]")) return;
    event.preventDefault();
    const query = new URLSearchParams([...new FormData(form)].filter((pair) => pair[1] !== ""));
    show(`${form.action.split("?")[0]}${query.size ? `?${query}` : ""}`);
  });
  addEventListener("popstate", () => show(location.href, true));

  function setUp() {
    const table = document.querySelector("table.trials");
    const pagers = document.querySelectorAll(".results > .pager");
    if (!table || !pagers.length) return;
    const last = pagers[pagers.length - 1];
    let busy = false;
    const ahead = new IntersectionObserver(async (seen) => {
      const next = last.querySelector("a[rel=next]");
      if (busy || !next || !seen.some((one) => one.isIntersecting) || table.tBodies.length >= MOST_PAGES) return;
      busy = true;
      const page = await fetched(next.href);
      const body = page.querySelector("table.trials tbody");
      const pager = [...page.querySelectorAll(".results > .pager")].pop();
      if (body && pager && table.isConnected) {
        table.append(document.adoptNode(body));
        last.replaceChildren(...document.adoptNode(pager).childNodes);
      }
      busy = false;
      ahead.unobserve(last);
      ahead.observe(last);
    }, { rootMargin: "1200px" });
    ahead.observe(last);
  }

  // What is shown stands in the url, also after scrolling.
  let waiting = 0;
  addEventListener("scroll", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const bodies = [...document.querySelectorAll("table.trials tbody")];
      const top = bodies.filter((body) => body.getBoundingClientRect().top < 200).pop() ?? bodies[0];
      if (bodies.length > 1 && top) history.replaceState(null, "", top.dataset.page);
    }, 200);
  }, { passive: true });

  // On a phone the filters begin folded.
  if (matchMedia("(max-width: 56rem)").matches) for (const one of document.querySelectorAll(".facets")) one.open = false;
  setUp();

  // The report runs as a site of its own in its frame: all it can do here is to name the answers that it would show.
  const framed = document.querySelector("iframe.report");
  for (const one of framed ? document.querySelectorAll("[data-script]") : []) one.hidden = false;
  addEventListener("message", (event) => {
    if (!framed || event.source !== framed.contentWindow || typeof event.data?.answers !== "string") return;
    const query = [...new URLSearchParams(event.data.answers)].filter(([name]) => name.startsWith("f."));
    location.assign(`${framed.dataset.answers}?${new URLSearchParams(query)}`);
  });

  // Keys 1 to 9 choose a label; a key that is held chooses once, and none for the next item.
  addEventListener("keydown", (event) => {
    const form = document.querySelector("form.labels");
    if (!form || event.repeat || event.metaKey || event.ctrlKey || event.altKey || event.target.matches("input[type=text], textarea")) return;
    const choice = form.querySelectorAll("button[name=label]")[Number(event.key) - 1];
    if (choice && /^[1-9]$/.test(event.key)) choice.click();
  });
})();
