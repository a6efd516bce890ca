// How certain the answer has to be: one slider, from any on the left to most certain on the right. It asks for a probability of
// every node, or for a share of texts that are right, which the model guarantees.
// Ids for tests: #certainty, #certainty-value, #certainty-sentence, #by-probability, #by-guarantee.

import { makeLane, post } from "/page/api.js";
import { afterPause, count, el } from "/page/dom.js";
import { attempt } from "/page/notices.js";
import { modelInfo } from "/page/state.js";
import { stopsInWords } from "/page/stops.js";

const RISKS = [0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005]; // from left to right
const JOIN = " › ";
const HINTS = {
  probability: "Move the slider to see where the prediction would stop if each node had to be more probable.",
  guarantee: "Move the slider to see where the prediction stops so that more texts are classified right.",
};

/** The control; `onStops(confidence)` and `onGuaranteed(labels or null)` tell what to show in the tree. */
export function makeCertainty({ onStops, onGuaranteed }) {
  const lane = makeLane();
  const problem = el("div", {});
  const slider = el("input", { type: "range", id: "certainty", min: "0", step: "1", value: "0", "aria-labelledby": "certainty-title", "aria-describedby": "certainty-sentence" });
  const value = el("output", { id: "certainty-value", for: "certainty" });
  const sentence = el("p", { id: "certainty-sentence", "aria-live": "polite" });
  const kinds = makeKinds(() => choose());
  const element = el("div", { class: "certainty", role: "group", "aria-labelledby": "certainty-title" },
    el("div", { class: "certainty-head" }, el("h3", { id: "certainty-title" }, "How certain must it be?"), kinds.element),
    el("div", { class: "confidence" }, slider, value), el("div", { class: "ends", "aria-hidden": "true" }, el("span", {}, "any"), el("span", {}, "more certain")),
    sentence, problem);
  const places = { probability: 0, guarantee: 0 }; // of the slider
  let run = null;
  let risks = [];

  const risk = () => risks[slider.valueAsNumber - 1]; // none at 0
  const say = (words) => {
    if (sentence.textContent !== words) sentence.textContent = words; // the same again would be read aloud again
  };
  const name = () => {
    const at = slider.valueAsNumber;
    const word = at === 0 ? "any" : kinds.chosen() === "probability" ? `${at}%` : inPercent(1 - risk());
    value.textContent = at === 0 ? word : `≥ ${word}`;
    slider.setAttribute("aria-valuetext", at === 0 ? word : `at least ${word}`);
  };
  const askGuaranteed = async () => {
    const signal = lane.start();
    const [asked, accepted] = [run, risk()];
    if (accepted === undefined || asked.result.problem) return onGuaranteed(null);
    return attempt(problem, async () => {
      const found = await post("/v1/classify", { text: asked.text, model: asked.model, risk: accepted, queue: false }, signal);
      if (signal.aborted) return;
      const { labels } = found.results[0];
      say(inWords(labels, accepted, modelInfo(asked.model).guarantee));
      onGuaranteed(labels);
    }, signal);
  };
  const later = afterPause(askGuaranteed, () => 120);
  const draw = () => {
    const isOpen = slider.valueAsNumber === 0;
    const isByProbability = kinds.chosen() === "probability";
    later.cancel();
    lane.stop();
    name();
    onGuaranteed(null);
    onStops(isByProbability ? slider.valueAsNumber / 100 : 0);
    if (isOpen) say(HINTS[kinds.chosen()]);
    else if (isByProbability) say(stopsInWords(run.result.labels, slider.valueAsNumber / 100));
    if (!isOpen && !isByProbability) later();
  };
  const choose = () => {
    slider.max = kinds.chosen() === "probability" ? "100" : String(risks.length);
    slider.value = String(places[kinds.chosen()]);
    draw();
  };
  slider.addEventListener("input", () => {
    places[kinds.chosen()] = slider.valueAsNumber;
    draw();
  });

  return {
    element,
    show(asked) {
      const guarantee = modelInfo(asked.model)?.guarantee;
      run = asked;
      risks = guarantee ? RISKS.filter((one) => one >= guarantee.least_risk) : [];
      places.guarantee = Math.min(places.guarantee, risks.length);
      kinds.offer(risks.length > 0);
      choose();
    },
  };
}

// What the slider asks for; only models with a guarantee have a choice.
function makeKinds(onChange) {
  const option = (value, id, checked) => el("input", { type: "radio", name: "certainty-kind", value, id, checked });
  const probability = option("probability", "by-probability", true);
  const guarantee = option("guarantee", "by-guarantee", false);
  const element = el("div", { class: "kinds", role: "radiogroup", "aria-labelledby": "certainty-title" },
    el("label", { class: "check" }, probability, "Probability of each node"), el("label", { class: "check" }, guarantee, "Share of texts that are right"));
  for (const one of [probability, guarantee]) one.addEventListener("change", onChange);
  return {
    element,
    chosen: () => (guarantee.checked ? "guarantee" : "probability"),
    offer(isThere) {
      element.hidden = !isThere;
      if (!isThere) probability.checked = true;
    },
  };
}

function inWords(labels, risk, guarantee) {
  const why = guarantee.is_proven ? `guaranteed by ${count(guarantee.documents)} documents kept out of training` : `estimated by cross-validation on ${count(guarantee.documents)} documents, not guaranteed`;
  const named = labels.map((label) => label.path.join(JOIN)).join(" and ");
  const right = inPercent(1 - risk);
  if (!labels.length) return `With at least ${right} right there is no label: no branch is likely enough (${why}).`;
  if (guarantee.kind === "risk-control") return `With at least ${right} right the labels are ${named}: on average over texts, at most ${inPercent(risk)} of the labels are wrong (${why}).`;
  return `With at least ${right} right the prediction is ${named}: it is wrong for at most ${inPercent(risk)} of texts (${why}).`;
}

function inPercent(share) {
  return `${Number((100 * share).toFixed(1))}%`;
}
