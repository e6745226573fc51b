"use strict";
// Everything can be read without this script: it only sorts, filters and opens.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function sortBy(header) {
    const body = header.closest("table").tBodies[0];
    const index = header.cellIndex;
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of all("th[aria-sort]", header.parentNode)) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const key = ({ cells: { [index]: cell } }) => cell.dataset.sort ?? (cell.title || cell.textContent.trim());
    const compare = (a, b) => {
      if (a === "" || b === "") return (a === "") - (b === ""); // what is undefined stays last, either way
      const difference = a - b;
      return sign * (Number.isNaN(difference) ? a.localeCompare(b, undefined, { numeric: true }) : difference);
    };
    const rows = [...body.rows].map((row) => [key(row), row]);
    body.append(...rows.sort((a, b) => compare(a[0], b[0])).map((pair) => pair[1]));
  }

  for (const header of all("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sortBy(header));
    header.replaceChildren(button);
  }

  function setUp(list) {
    const [input, output, toggle] = ["input", "output", "[data-toggle]"].map((name) => list.querySelector(name));
    const folds = all("details", list);
    let items;
    const read = () => all("[data-item]", list).map((node) => {
      const group = node.closest("[data-group]");
      const texts = [...node.querySelectorAll("th, td, .what, .value, p, dt, dd")].map((part) => part.textContent);
      return { node, group, words: ` ${group ? group.dataset.group : ""} ${texts.join(" ")}`.toLowerCase().replace(/\s+/g, " ") };
    });
    const start = folds.map((fold) => fold.open);
    const labels = toggle.textContent === "Open all" ? ["Open all", "Close all"] : ["Show all", "Cover all"];

    input.addEventListener("input", () => {
      items ??= read(); // not before it is asked for: a long page opens faster
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = new Map();
      let count = 0;
      for (const { node, group, words } of items) {
        // Digits match from the start of a word, or "2" would find every 0.12.
        const match = wanted.every((word) => words.includes(/^[\d\u2212]/.test(word) ? ` ${word}` : word));
        node.hidden = !match;
        count += match;
        if (group) found.set(group, found.get(group) || match);
      }
      for (const [group, match] of found) {
        group.hidden = !match;
        group.open = wanted.length ? match : start[folds.indexOf(group)];
      }
      output.value = wanted.length ? `${count} of ${items.length}` : "";
    });

    toggle.addEventListener("click", () => {
      const open = toggle.getAttribute("aria-pressed") !== "true";
      for (const fold of folds) fold.open = open;
      toggle.setAttribute("aria-pressed", String(open));
      toggle.textContent = labels[Number(open)];
    });
  }

  // An image gets its source when its example is first opened: until then no one sees it, and nothing decodes it.
  const island = document.getElementById("pictures");
  const sources = island ? JSON.parse(island.textContent) : {};
  for (const example of all(".example")) {
    example.addEventListener("toggle", () => {
      for (const place of example.open ? all("[data-picture]:empty", example) : []) {
        const image = new Image();
        image.alt = place.dataset.alt;
        image.src = sources[place.dataset.picture];
        place.append(image);
      }
    });
  }

  // What scrolls sideways says so, and stops the Tab key; what does not is only read.
  const cues = new Map();
  function mark(region) {
    const hidden = region.scrollWidth - region.clientWidth;
    const scrolls = hidden > 1 || region.scrollHeight > region.clientHeight + 1;
    if (scrolls) region.tabIndex = 0;
    else if (region !== document.activeElement) region.removeAttribute("tabindex");
    if (hidden > 1 && !cues.has(region)) {
      const cue = document.createElement("p");
      cue.className = "cue";
      cue.setAttribute("aria-hidden", "true"); // a screen reader reads all of it
      cue.textContent = "Scroll sideways to see all of it \u2192";
      region.before(cue);
      cues.set(region, cue);
    }
    if (cues.has(region)) cues.get(region).hidden = hidden <= 1;
  }
  const sizes = new ResizeObserver((found) => found.forEach(({ target }) => mark(target)));
  for (const region of all(".scroll")) sizes.observe(region);

  // `prejudge view` shows the answers behind a number beside this page; a page of its own names the command.
  for (const mark of parent !== window ? all("[data-answers]") : []) {
    mark.addEventListener("click", (event) => {
      event.preventDefault();
      parent.postMessage({ answers: mark.dataset.answers }, "*");
    });
  }

  // A link to a part opens it, and every part around it.
  const folds = all("details.part");
  function reveal(hash) {
    const target = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
    const closed = [];
    for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      if (!fold.open) closed.push(fold);
    }
    for (const fold of closed) fold.open = true;
    if (closed.length) target.scrollIntoView();
  }
  for (const link of all('a[href^="#"]')) link.addEventListener("click", () => reveal(link.hash));
  window.addEventListener("hashchange", () => reveal(location.hash));
  reveal(location.hash);

  const every = document.querySelector("[data-parts]");
  every.addEventListener("click", () => {
    const open = every.getAttribute("aria-pressed") !== "true";
    for (const fold of folds) fold.open = open;
    every.setAttribute("aria-pressed", String(open));
    every.textContent = open ? "Close all parts" : "Open all parts";
  });

  for (const node of all("[data-script]")) node.hidden = false;
  for (const list of all("[data-list]")) setUp(list);

  // Paper cannot be clicked: every part prints in full, examples only if their reader opened them.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("details.part:not([open]), details.metric:not([open])");
    for (const fold of closed) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
  });
})();
