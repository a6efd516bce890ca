// An evaluation: figures, levels, calibration, weakest nodes, confusions. For tests: .figure, #report-levels, #report-nodes, #report-confusions.

import { calibrationChart, levelChart } from "/page/charts.js";
import { bar, count, el, percent } from "/page/dom.js";

const WEAKEST = 15;
const CONFUSIONS = 12;
const LABELS = {
  accuracy: "exact match",
  hierarchical_f1: "hierarchical F1 (with ancestors)",
  micro_f1_own: "micro F1, most specific labels",
  macro_f1_own: "macro F1, most specific labels",
  micro_f1_leaves: "micro F1, leaves",
  macro_f1_leaves: "macro F1, leaves with documents",
  h_loss: "H-loss",
  h_loss_siblings: "H-loss, costs 1 / siblings",
  h_loss_own_costs: "H-loss, own costs",
  mean_distance_of_errors: "distance of an error (steps in the tree)",
  document_auc: "AUC within a document",
  leaf_precision_at_1: "precision at 1 (leaves)",
  leaf_precision_at_3: "precision at 3 (leaves)",
  prediction_calibration_error: "calibration error of predicted labels",
};

/** The whole report as elements. */
export function drawReport(report) {
  const shares = ["precision", "recall", "f1", "macro_f1", "h_loss"];
  const levels = report.levels.map((row) => [String(row.key + 1), count(row.nodes), count(row.support), ...shares.map((key) => row[key].toFixed(3))]);
  return [
    drawFigures([["documents", count(report.documents)], ...Object.keys(LABELS).filter((key) => key in report.figures).map((key) => [LABELS[key], report.figures[key].toFixed(3)])]),
    el("div", { class: "plots" },
      plot("F1 at each level", levelChart(report.levels)),
      report.reliability.length > 0 && plot("Predicted and observed frequency", calibrationChart(report.reliability))),
    section("By level", drawTable(["level", "nodes", "support", "precision", "recall", "micro F1", "macro F1", "H-loss"], levels, [], "report-levels")),
    report.calibration && section("Calibration error by level", drawCalibration(report.calibration)),
    report.guarantees && section("Backing off to a parent to keep the error rate", drawGuarantees(report.guarantees)),
    report.nodes.length > 0 && section("Weakest nodes", drawWeakest(report.nodes)),
    report.confusions.length > 0 && section("Confused siblings", drawConfusions(report.confusions)),
    section("How far from the truth", drawDistances(report)),
    report.notes.map((note) => el("p", { class: "hint" }, `Note: ${note}.`)),
  ];
}

function plot(caption, chart) {
  return el("figure", {}, el("figcaption", {}, caption), chart);
}

function section(title, content) {
  return el("section", { class: "card" }, el("h2", {}, title), content);
}

/** Figures as cards; pairs of a name and a value. */
export function drawFigures(pairs) {
  return el("div", { class: "figures" }, pairs.map(([name, value]) => el("div", { class: "figure" }, el("b", {}, value), el("span", {}, name))));
}

/** A table; `texts` are the places of columns of words. */
export function drawTable(head, rows, texts = [], id = null) {
  const cell = (tag, value, i) => el(tag, { class: texts.includes(i) ? "text" : "", scope: tag === "th" ? "col" : null, dir: texts.includes(i) ? "auto" : null }, value);
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": head.join(", ") }, el("table", { id },
    el("thead", {}, el("tr", {}, head.map((name, i) => cell("th", name, i)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, i) => cell("td", value, i)))))));
}

function drawCalibration(levels) {
  const keys = ["pairs", "pairs_uncalibrated", "top_label", "top_label_uncalibrated"];
  const rows = levels.map((row) => [String(row.depth + 1), ...keys.map((key) => row[key]?.toFixed(3) ?? "–")]);
  return drawTable(["level", "all nodes", "before calibration", "most probable node", "before calibration"], rows, [], "report-calibration");
}

function drawGuarantees(guarantees) {
  const share = (value) => `${(100 * value).toFixed(1)}%`;
  const rows = guarantees.map((row) => [String(row.risk), share(row.guaranteed), share(row.achieved), row.depth.toFixed(2), row.depth_without_guarantee.toFixed(2), share(row.without_label)]);
  return drawTable(["risk", "guaranteed", "achieved", "mean depth", "depth without guarantee", "no label"], rows, [], "report-guarantees");
}

function drawWeakest(nodes) {
  const weakest = [...nodes].sort((a, b) => a.f1 - b.f1 || b.support - a.support).slice(0, WEAKEST);
  const f1 = (row) => el("div", { class: "mini" }, bar(row.f1, "green"), el("span", { class: "number" }, row.f1.toFixed(2)));
  const rows = weakest.map((row) => [row.path, count(row.support), count(row.predicted), row.precision.toFixed(2), row.recall.toFixed(2), f1(row)]);
  return drawTable(["node", "true", "predicted", "precision", "recall", "F1"], rows, [0], "report-nodes");
}

function drawConfusions(confusions) {
  const most = confusions[0].count;
  const times = (row) => el("div", { class: "mini" }, bar(row.count / most, "warm"), el("span", { class: "number" }, count(row.count)));
  const rows = confusions.slice(0, CONFUSIONS).map((row) => [row.true, row.predicted, row.parent || "(top level)", times(row)]);
  return drawTable(["true", "taken for", "below", "times"], rows, [0, 1, 2], "report-confusions");
}

function drawDistances({ distances, documents }) {
  const line = ([steps, number]) => el("li", {}, el("span", {}, steps === "0" ? "right" : `${steps} steps off`), bar(number / documents, steps === "0" ? "green" : "warm"), el("span", { class: "number" }, percent(number / documents)));
  return el("ul", { class: "bars narrow" }, Object.entries(distances).map(line));
}
