// Two models on one text, side by side.
// Ids for tests: #compare-text, #compare-left, #compare-right, #compare-go, #parting, #left-answer, #right-answer.

import { makeLane, post } from "/page/api.js";
import { afterPause, button, el, field, pathLine, replace } from "/page/dom.js";
import { ladder, sharedDepth } from "/page/ladder.js";
import { attempt } from "/page/notices.js";
import { modelInfo, state } from "/page/state.js";
import { wordBars } from "/page/words.js";

const SIDES = ["left", "right"];

/** The view. */
export function makeCompare() {
  const lane = makeLane();
  const input = el("textarea", { id: "compare-text", rows: "4", dir: "auto", spellcheck: "false", placeholder: "Paste a text for both models." });
  const choosers = SIDES.map((side) => el("select", { id: `compare-${side}` }, state.models.map((model) => el("option", { value: model.name }, model.name))));
  const boxes = SIDES.map((side) => el("section", { class: "card", id: `${side}-answer`, "aria-label": `${side} model` }));
  const problem = el("div", { id: "compare-problem" });
  const parting = el("div", { id: "parting", class: "card", role: "status", hidden: true });

  const compare = async () => {
    later.cancel();
    const signal = lane.start();
    state.text = input.value;
    const text = input.value;
    if (!text.trim()) return hide();
    const asked = choosers.map((chooser) => chooser.value);
    return attempt(problem, async () => {
      const found = await Promise.all(asked.map((model) => post("/v1/explain", { text, model }, signal)));
      if (signal.aborted) return;
      show(found);
    }, signal);
  };
  const later = afterPause(compare, () => (input.value.length > 20_000 ? 1500 : 450));
  const hide = () => {
    for (const box of [...boxes, parting]) box.hidden = true;
  };
  const show = (found) => {
    for (const box of [...boxes, parting]) box.hidden = false;
    replace(parting, el("h2", {}, "Comparison"), el("p", {}, partingSentence(found)));
    found.forEach((explanation, i) => drawSide(boxes[i], explanation, found[1 - i]));
  };

  input.addEventListener("input", () => later());
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) compare();
  });
  for (const chooser of choosers) chooser.addEventListener("change", compare);
  const element = el("section", { "aria-labelledby": "compare-title" },
    el("h1", { id: "compare-title" }, "Compare two models"),
    el("div", { class: "card stack" }, field("Text", input),
      el("div", { class: "options-row" }, field("Left model", choosers[0]), field("Right model", choosers[1]),
        button("Compare", compare, { class: "main", id: "compare-go" })), problem),
    parting, el("div", { class: "two" }, boxes));
  hide();

  return {
    element,
    open() {
      const other = state.models.find((model) => model.name !== state.model) ?? modelInfo();
      if (!choosers[0].dataset.set) [choosers[0].value, choosers[1].value] = [state.model, other.name];
      choosers[0].dataset.set = "yes";
      if (state.text && state.text !== input.value) input.value = state.text;
      if (input.value) compare();
    },
  };
}

function partingSentence([one, other]) {
  const [mine, theirs] = [one, other].map((found) => found.labels[0]?.path ?? []);
  const shared = sharedDepth(mine, theirs);
  const names = [one.model, other.model];
  if (!mine.length && !theirs.length) return "Neither predicts a label.";
  if (!mine.length || !theirs.length) return `Only ${mine.length ? names[0] : names[1]} predicts a label.`;
  if (shared === mine.length && shared === theirs.length) return el("span", {}, "Both predict ", pathLine(mine), ".");
  const start = shared ? [el("span", {}, "Both go to "), pathLine(mine.slice(0, shared)), ". Then "] : ["They differ at the top: "];
  return el("span", {}, start, goesOn(names[0], mine[shared]), ", and ", goesOn(names[1], theirs[shared]), ".");
}

function goesOn(model, title) {
  return title === undefined ? el("span", {}, el("b", {}, model), " stops") : el("span", {}, el("b", {}, model), " says ", el("bdi", {}, title));
}

function drawSide(box, explanation, other) {
  const { explained, labels } = explanation;
  const theirs = new Set(other.labels.flatMap((label) => label.path.map((_, i) => label.path.slice(0, i + 1).join("\0"))));
  replace(box, el("h2", {}, el("bdi", {}, explanation.model), el("span", { class: "hint" }, ` ${explanation.system}`)),
    labels.length ? labels.map((label) => drawPath(label, theirs)) : el("p", {}, "No label."),
    el("h3", {}, "What each word adds to ", el("bdi", {}, explained.path.at(-1) ?? "")),
    el("p", { class: "hint" }, "Against ", pathLine(explained.rival)),
    explained.words.length ? wordBars(explained.words, explained.prior, 8) : el("p", { class: "hint" }, "This kind of model does not say what each word adds."));
}

// Steps that the other model does not take are marked in words, too.
function drawPath(label, theirs) {
  return ladder(label.path, label.probabilities, (depth) => (theirs.has(label.path.slice(0, depth + 1).join("\0")) ? null : "only here"));
}
