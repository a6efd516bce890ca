// Charts as SVG. Colours come from the style sheet, so that they fit light and dark; shapes differ, too, not colours alone.

import { el, svg } from "/page/dom.js";

const SIZE = { width: 420, height: 250, left: 36, right: 10, top: 10, bottom: 28 };
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"];

const across = (share) => SIZE.left + share * (SIZE.width - SIZE.left - SIZE.right);
const down = (share) => SIZE.height - SIZE.bottom - share * (SIZE.height - SIZE.top - SIZE.bottom);

/** Predicted probability against observed frequency, one line per level; the dashed diagonal is perfect calibration. */
export function calibrationChart(rows) {
  const depths = [...new Set(rows.map((row) => row.depth))].sort((a, b) => a - b).slice(0, 6);
  const lines = depths.map((depth, i) => drawLine(rows.filter((row) => row.depth === depth), i));
  const chart = drawFrame("Predicted and observed frequency",
    svg("line", { class: "ideal", x1: across(0), y1: down(0), x2: across(1), y2: down(1) }), lines,
    [0, 0.5, 1].map((share) => svg("text", { x: across(share), y: SIZE.height - 8, "text-anchor": share === 1 ? "end" : "middle" }, `${share * 100}%`)));
  return el("div", {}, chart, drawKeys(depths.map((depth) => `level ${depth + 1}`)), el("p", { class: "hint" }, "Above the dashed line the model is underconfident, below it overconfident."));
}

function drawLine(rows, i) {
  const points = [...rows].sort((a, b) => a.predicted - b.predicted);
  const colour = { stroke: `var(--c${i})` };
  return [
    svg("polyline", { class: "line", points: points.map((row) => `${across(row.predicted)},${down(row.observed)}`).join(" "), "stroke-dasharray": DASHES[i], ...colour }),
    points.map((row) => svg("circle", { cx: across(row.predicted), cy: down(row.observed), r: 3, fill: `var(--c${i})` },
      svg("title", {}, `predicted ${row.predicted.toFixed(2)}, observed ${row.observed.toFixed(2)}, ${row.count.toLocaleString("en")} times`))),
  ].flat();
}

/** F1 of each level: over all its labels, and the mean over its nodes. */
export function levelChart(levels) {
  const slot = 1 / Math.max(levels.length, 1);
  const width = Math.min(46, (across(slot) - across(0)) * 0.32);
  const bars = levels.flatMap((row, i) => {
    const middle = across((i + 0.5) * slot);
    return [...column(middle - width - 2, width, row.f1, 0), ...column(middle + 2, width, row.macro_f1, 1),
      svg("text", { x: middle, y: SIZE.height - 8, "text-anchor": "middle" }, `level ${row.key + 1}`)];
  });
  return el("div", {}, drawFrame("F1 at each level", bars), drawKeys(["micro F1", "macro F1"], true));
}

function column(x, width, share, i) {
  return [
    svg("rect", { x, y: down(share), width, height: down(0) - down(share), rx: 3, fill: `var(--c${i})` }),
    svg("text", { x: x + width / 2, y: down(share) - 4, "text-anchor": "middle" }, share.toFixed(2)),
  ];
}

function drawFrame(title, ...content) {
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { class: "grid", x1: across(0), y1: down(share), x2: across(1), y2: down(share) }),
    svg("text", { x: SIZE.left - 6, y: down(share) + 4, "text-anchor": "end" }, String(share)),
  ]);
  return svg("svg", { class: "chart", viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", "aria-label": title }, grid, ...content);
}

function drawKeys(names, areBars = false) {
  const sign = (i) => svg("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, areBars
    ? svg("rect", { x: 4, y: 0, width: 12, height: 10, rx: 2, fill: `var(--c${i})` })
    : svg("line", { x1: 0, y1: 5, x2: 22, y2: 5, stroke: `var(--c${i})`, "stroke-width": 3, "stroke-dasharray": DASHES[i] }));
  return el("ul", { class: "keys" }, names.map((name, i) => el("li", {}, sign(i), name)));
}
