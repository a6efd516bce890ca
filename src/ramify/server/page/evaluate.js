// How good the model is: the report of its training, or a labelled file of one's own.
// Ids for tests: table-chooser.js with the stem evaluate, #evaluate-go, #evaluate-problem, #evaluate-status,
// #report (with report.js: .figure, #report-levels, #report-nodes, #report-confusions), #errors, .error, #errors-more.

import { ask, get, makeLane } from "/page/api.js";
import { namesLine } from "/page/columns.js";
import { announce, button, count, el, replace, shortened, countOf } from "/page/dom.js";
import { ladder, sharedDepth } from "/page/ladder.js";
import { attempt } from "/page/notices.js";
import { makePaths } from "/page/paths.js";
import { drawReport } from "/page/report.js";
import { modelInfo, state } from "/page/state.js";
import { makeTableChooser } from "/page/table-chooser.js";

const EXAMPLES = 20;
const SHOWN = 5; // of them at first
const TEXT = 600; // characters of a text that went wrong

/** The view. */
export function makeEvaluate() {
  const lane = makeLane();
  const problem = el("div", { id: "evaluate-problem" });
  const status = el("p", { id: "evaluate-status", role: "status", class: "hint" });
  const report = el("div", { id: "report", class: "stack" });
  const errors = el("div", { id: "errors" });
  const go = el("button", { type: "button", class: "main", id: "evaluate-go", disabled: true }, "Evaluate");
  let isRunning = false;
  let shownModel = null;
  const update = () => (go.disabled = isRunning || !chooser.table());
  const chooser = makeTableChooser({ stem: "evaluate", label: "Drop a table of texts and their true labels here, or choose one", wantsLabels: true, onChange: () => update() });

  const showStored = () => {
    const signal = lane.start();
    const model = state.model;
    replace(errors);
    return attempt(problem, async () => {
      const found = modelInfo().has_report && (await get(`/v1/models/${encodeURIComponent(model)}/report`, {}, signal));
      if (signal.aborted) return;
      shownModel = model;
      status.textContent = found ? `Report from the training of ${model}, on ${countOf(found.report.documents, "document")} held out for testing.`
        : `${model} keeps no report of its training. Drop a labelled file to evaluate it.`;
      replace(report, found ? drawReport(found.report) : []);
    }, signal);
  };

  const evaluate = () => {
    const signal = lane.start();
    const [model, table] = [state.model, chooser.table()];
    if (!table) return undefined;
    status.textContent = `Evaluating ${model} on ${table.name} …`;
    isRunning = true;
    update();
    return attempt(problem, async () => {
      const params = { model, ...table.params, examples: EXAMPLES };
      const response = await ask("/v1/evaluate", { method: "POST", params, headers: { "Content-Type": table.type }, body: table.body, signal });
      const found = await response.json();
      const drawn = await drawErrors(found.errors, model);
      if (signal.aborted) return;
      const left = found.left_out ? ` ${countOf(found.left_out, "row")} left out.` : "";
      replace(status, `${model} on ${table.name}: ${countOf(found.documents, "document")}.${left} The text was read from `, namesLine(found.text), ", and the labels from ", namesLine(found.label), ".");
      replace(report, drawReport(found.report));
      replace(errors, drawn);
      announce(status.textContent);
    }, signal).then((isDone) => {
      isRunning = false;
      update();
      if (!isDone && !signal.aborted) status.textContent = "";
    });
  };

  go.addEventListener("click", evaluate);
  const card = el("section", { class: "card stack", "aria-labelledby": "own-title" }, el("h2", { id: "own-title" }, "Your own labelled file"),
    chooser.element, el("div", { class: "options-row" }, go), problem);
  const element = el("section", { "aria-labelledby": "evaluate-title" }, el("h1", { id: "evaluate-title" }, "How good is it?"), card, status, report, errors);

  return {
    element,
    open() {
      if (shownModel !== state.model) showStored();
    },
  };
}

async function drawErrors(errors, model) {
  if (!errors.length) return el("p", { class: "done" }, "No errors.");
  const paths = makePaths(model);
  const drawn = await Promise.all(errors.map(async (error) => {
    const [truth, said] = await Promise.all([error.true, error.predicted.map((one) => one.label)].map((labels) => Promise.all(labels.map(paths.pathOf))));
    return drawError(error, truth, said);
  }));
  return el("section", { class: "card", "aria-labelledby": "errors-title" }, el("h2", { id: "errors-title" }, "The worst errors"),
    el("p", { class: "hint" }, "Farthest from the true label first, then the most confident."), drawn.slice(0, SHOWN), drawn.length > SHOWN && drawMore(drawn.slice(SHOWN)));
}

function drawMore(rest) {
  const more = button(`Show ${rest.length} more`, () => more.replaceWith(...rest), { id: "errors-more" });
  return more;
}

function drawError(error, truth, said) {
  return el("article", { class: "error", data: { line: error.line } },
    el("p", { dir: "auto" }, shortened(error.text, TEXT)),
    el("p", { class: "hint" }, `Line ${count(error.line)}, ${countOf(error.distance, "step")} from the true label.`),
    el("div", { class: "two" },
      el("div", {}, el("h3", {}, "True"), truth.map((path) => ladder(path, [], partingBadge(path, said)))),
      el("div", {}, el("h3", {}, "Predicted"), said.length ? said.map((path, i) => ladder(path, atTheEnd(path, error.predicted[i].probability), partingBadge(path, truth)))
        : el("p", {}, "No label."))));
}

// Only the last node of the path has a probability here.
function atTheEnd(path, probability) {
  return path.map((_, i) => (i === path.length - 1 ? probability : undefined));
}

// The first node that no path on the other side has is where they part.
function partingBadge(path, others) {
  const shared = Math.max(0, ...others.map((other) => sharedDepth(path, other)));
  return (depth) => (depth === shared ? "differs here" : null);
}
