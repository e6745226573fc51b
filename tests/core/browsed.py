"""What tests of the page in a browser share: a report in which every part is, and measures of what is shown."""

from __future__ import annotations

from matplotlib.figure import Figure

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.estimates import Chart, Estimate, Example
from prejudge.core.report import Picture, Published, ReportContent, ShownExample, StudyInfo, Table

OUTSIDE = """width => [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
    && !e.closest('.scroll, svg, .skip') && e.getBoundingClientRect().width > 1
    && e.getBoundingClientRect().right > width + 1)
    .map(e => e.outerHTML.slice(0, 80))"""
"""What sticks out on the right of a page that is so wide, in a browser."""
OPEN_ALL = "document.querySelectorAll('details').forEach(fold => fold.open = true)"
CONTRAST = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = css => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
                       return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
                                        .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const ground = node => { for (; node; node = node.parentElement) {
      const found = rgb(getComputedStyle(node).backgroundColor); if (found[3] === 255) return found; }
      return [255, 255, 255]; };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = [99, ''];
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || ['SCRIPT', 'NOSCRIPT'].includes(node.tagName)) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < least[0]) least = [ratio, node.outerHTML.slice(0, 80)];
  }
  return least;
})()
"""


def tab_to(page, selector, most=400):
    """Press Tab until the focus is on what the selector names."""
    for _ in range(most):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached by keyboard")


def content(said="words", count=4):
    """Return a report in which a model's words stand wherever they could."""
    values = [0.2, None, 10.0, -1.0]
    rows = [
        Estimate.from_flat(
            metric=said, group={"axis": said, "item": f"item {i}"}, value=values[i % 4], neutral=0.0, low=-2.0
        )
        for i in range(count)
    ]
    rows += [rows[0].replace(topic=topic, metric=f"{topic} {said}") for topic in ("missing", "position")]
    example = ShownExample(Example(said, {"axis": said}, (b"\1",), 0.5, said), ((said, said),), ((said, "a" * 64),))
    return ReportContent(
        title=said,
        study=StudyInfo(name=said, url=said, summary=said, citation=said),
        models={"subject": Identity(adapter=said, version=said, model=said, digest=said, settings={said: said})},
        names={"subject": said},
        when=said,
        estimates=rows,
        conclusions={said: said},
        charts=[Chart("chart", said.replace("$", ""), said, Figure(figsize=(6, 2)))],
        published=[Published(metric=said, published=0.5, note=said)],
        missing=[Table(said, (said, "n"), ((said, 3),))],
        examples=[example],
        pictures={"a" * 64: Picture("image/png", b"no image", said)},
        warnings=[said],
        methods=[said],
        limits=[said],
        deviations=[said],
        provenance={said: [said, {said: said}]},
    )
