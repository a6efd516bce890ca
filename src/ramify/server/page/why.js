// Why a text got its label: one step at a time, or the whole answer. Ids for tests: see classify.js.

import { button, el, pathLine, percent, replace, signed } from "/page/dom.js";
import { showProblem } from "/page/notices.js";
import { legend, lightUp, markedText, wordBars } from "/page/words.js";

/** The panel; `show(explanation, text, step)` draws, `step` null stands for the whole answer. */
export function makeWhy({ onBack }) {
  const title = el("h2", { id: "why-title" }, "Why?");
  const steps = el("div", { id: "why-steps", class: "steps", role: "group", "aria-label": "Steps on the path" });
  const body = el("div", { class: "why-body", "aria-live": "polite" });
  const problem = el("div", { id: "why-problem" });
  const panel = { element: el("div", {}, title, steps, problem, body), problem, onStep: () => {} };

  panel.clear = (error) => {
    title.textContent = "Why?";
    replace(steps);
    replace(body);
    replace(problem);
    if (error) showProblem(problem, error);
  };

  panel.show = (explanation, text, step, isOther = false) => {
    const choose = (place) => {
      panel.show(explanation, text, place, isOther);
      panel.onStep(place);
      steps.querySelector('[aria-pressed="true"]')?.focus();
    };
    const last = explanation.explained.path.at(-1);
    replace(problem);
    replace(title, isOther && !isTaken(explanation) ? "Why not " : "Why ", el("bdi", {}, step === null ? last : explanation.steps[step].title), "?");
    replace(steps, stepButtons(explanation, step, choose), isOther && button("Back to the answer", onBack, { class: "link", id: "why-back" }));
    replace(body, step === null ? drawWhole(explanation, text) : drawStep(explanation, text, explanation.steps[step]));
  };
  return panel;
}

function isTaken(explanation) {
  return explanation.steps.at(-1)?.is_taken;
}

function stepButtons(explanation, step, choose) {
  const one = (text, place, data) => button(el("bdi", {}, text), () => choose(place), { "aria-pressed": String(place === step), data: { step: data } });
  const each = explanation.steps.map((known, i) => one(known.title, i, i));
  return [...each, explanation.steps.length > 1 && one("The whole path", null, "whole")];
}

function drawStep(explanation, text, step) {
  const rival = step.rival?.at(-1);
  const sentence = el("p", {}, el("bdi", {}, step.title), ` has a probability of ${percent(step.probability)}. `, standing(step, rival));
  const reason = step.reason && el("p", { class: "reason" }, step.reason);
  return [el("div", { class: "said" }, reason, sentence), drawWords(explanation, text, step, step.title, rival)];
}

function standing(step, rival) {
  if (!step.words.length && rival === undefined) return "There was no other way on from here.";
  const by = `${Math.abs(step.score).toFixed(2)}`;
  const where = step.score < 0 ? "behind" : "ahead of";
  if (rival === undefined) return `Its own classifier says ${step.score < 0 ? "no" : "yes"}, by ${by}.`;
  return el("span", {}, `Its closest rival here was `, el("bdi", {}, el("b", {}, rival)), `; it is ${by} ${where} it.`);
}

function drawWhole(explanation, text) {
  const { explained } = explanation;
  const sentence = el("p", {}, "Against its best rival overall, ", pathLine(explained.rival), `, the answer is ${signed(explained.margin)} ahead.`);
  return [el("div", { class: "said" }, sentence), drawWords(explanation, text, explained, explained.path.at(-1), explained.rival.at(-1))];
}

function drawWords(explanation, text, { words, prior }, winner, rival) {
  if (!words.length) {
    const reason = explanation.additive ? "No word of the text had a say in this step." : "This kind of model does not say what each word adds.";
    return el("div", {}, el("p", { class: "note" }, reason), markedText(text, [], new Map(), []));
  }
  const weights = new Map(words.map((word) => [word.word, word.weight]));
  const bars = wordBars(words, prior);
  const marked = markedText(text, explanation.spans, weights, explanation.terms);
  lightUp(bars, marked);
  return el("div", { class: "two evidence" },
    el("div", {}, el("h3", {}, "What each word adds"), bars),
    el("div", {}, el("h3", {}, "In the text"), marked, legend(winner, rival)));
}
