// Why a text got its label: one step at a time, or the whole answer. Ids for tests: see classify.js.

import { button, el, pathLine, percent, replace } from "/page/dom.js";
import { showProblem } from "/page/notices.js";
import { legend, lightUp, markedText, wordBars } from "/page/words.js";

/** The panel, and apart from it the marked text; `show(explanation, text, step)` draws, `step` null is the whole path. */
export function makeWhy({ onBack }) {
  const title = el("h2", { id: "why-title" }, "Why?");
  const steps = el("div", { id: "why-steps", class: "steps", role: "group", "aria-label": "Steps on the path" });
  const said = el("div", { class: "said", "aria-live": "polite" });
  const bars = el("div", { class: "why-words" });
  const marked = el("div", { class: "why-marked" });
  const problem = el("div", { id: "why-problem" });
  const panel = { head: el("div", {}, title, steps, problem), said, bars, marked, problem, onStep: () => {} };

  panel.clear = (error) => {
    title.textContent = "Why?";
    for (const box of [steps, said, bars, marked, problem]) replace(box);
    if (error) showProblem(problem, error);
  };

  panel.show = (explanation, text, step, isOther = false) => {
    const choose = (place) => {
      panel.show(explanation, text, place, isOther);
      panel.onStep(place);
      steps.querySelector('[aria-pressed="true"]')?.focus();
    };
    const last = explanation.explained.path.at(-1);
    const about = step === null ? wholeOf(explanation) : stepOf(explanation, step);
    replace(problem);
    replace(title, isOther && !isTaken(explanation) ? "Why not " : "Why ", el("bdi", {}, step === null ? last : about.title), "?");
    replace(steps, stepButtons(explanation, step, choose), isOther && button("Back to the prediction", onBack, { class: "link", id: "why-back" }));
    const isGuess = explanation.terms.length === 0;
    replace(said, isGuess && el("p", { class: "guess" }, "The model knows no word of this text; it predicts the most probable label without any."),
      step === null ? sayWhole(explanation.explained) : sayStep(about));
    drawWords(explanation, text, about, { bars, marked });
  };
  return panel;
}

// The whole path seen as one step: its end against the best rival overall.
function wholeOf({ explained }) {
  return { title: explained.path.at(-1), rivalName: explained.rival.at(-1), words: explained.words, prior: explained.prior };
}

// A text may also belong to a node itself: then the node above is the rival, and the question was whether to go on at all.
function stepOf({ steps, explained }, place) {
  const step = steps[place];
  const above = explained.path.slice(0, place);
  const isAbove = step.rival?.length === above.length && above.every((title, i) => title === step.rival[i]);
  return { ...step, rivalName: step.rival && (isAbove ? `stopping at ${above.at(-1)}` : step.rival.at(-1)) };
}

function isTaken(explanation) {
  return explanation.steps.at(-1)?.is_taken;
}

function stepButtons(explanation, step, choose) {
  const one = (text, place, data) => button(el("bdi", {}, text), () => choose(place), { "aria-pressed": String(place === step), data: { step: data } });
  const each = explanation.steps.map((known, i) => one(known.title, i, i));
  return [...each, explanation.steps.length > 1 && one("The whole path", null, "whole")];
}

function sayStep(step) {
  const sentence = el("p", {}, el("bdi", {}, step.title), ` has a probability of ${percent(step.probability)}. `, standing(step));
  return [step.reason && el("p", { class: "reason" }, `The rule: ${step.reason.replace(/\.?$/, ".")}`), sentence];
}

function standing(step) {
  const by = Math.abs(step.score).toFixed(2);
  if (!step.words.length && !step.rivalName) return "There was no alternative at this step.";
  if (!step.rivalName) return `Its own classifier says ${step.score < 0 ? "no" : "yes"}, by ${by}.`;
  return el("span", {}, "Its closest rival here was ", el("b", {}, el("bdi", {}, step.rivalName)), `; it is ${by} ${step.score < 0 ? "behind" : "ahead of"} it.`);
}

function sayWhole(explained) {
  const where = explained.margin < 0 ? "behind" : "ahead";
  return el("p", {}, "Against its best rival overall, ", pathLine(explained.rival), `, it is ${Math.abs(explained.margin).toFixed(2)} ${where}.`);
}

function drawWords(explanation, text, { title, rivalName, words, prior }, { bars, marked }) {
  const known = new Map(words.map((word) => [word.word, word.weight]));
  const drawn = markedText(text, explanation.spans, known, explanation.terms);
  const none = explanation.additive ? "No word of the text counts here." : "This kind of model does not say what each word adds.";
  const list = words.length ? wordBars(words, prior) : el("p", { class: "note" }, none);
  replace(bars, el("h3", {}, "What each word adds"), list);
  replace(marked, drawn, words.length > 0 && legend(title, rivalName));
  lightUp(list, drawn);
}
