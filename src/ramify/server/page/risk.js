// How far down the answer goes when no more than a chosen share of texts may be wrong. Ids for tests: #risk, #risk-value, #risk-sentence.

import { makeLane, post } from "/page/api.js";
import { afterPause, count, el } from "/page/dom.js";
import { attempt } from "/page/notices.js";
import { modelInfo } from "/page/state.js";

const RISKS = [0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005];
const JOIN = " › ";

/** The slider; `onAnswer(labels)` gets the labels within the risk, or null without a risk. */
export function makeRisk({ onAnswer }) {
  const lane = makeLane();
  const problem = el("div", {});
  const slider = el("input", { type: "range", id: "risk", min: "0", step: "1", value: "0", "aria-describedby": "risk-sentence" });
  const value = el("output", { id: "risk-value", for: "risk" });
  const sentence = el("p", { id: "risk-sentence", "aria-live": "polite" });
  const element = el("div", { hidden: true },
    el("div", { class: "confidence" }, el("label", { for: "risk" }, "Risk allowed"), slider, value), sentence, problem);
  let run = null;
  let risks = [];

  const chosen = () => risks[slider.valueAsNumber - 1]; // none at 0
  const name = () => {
    const word = chosen() === undefined ? "any" : inPercent(chosen());
    value.textContent = word;
    slider.setAttribute("aria-valuetext", word);
  };
  const ask = async () => {
    const signal = lane.start();
    const [asked, risk] = [run, chosen()];
    sentence.textContent = "";
    onAnswer(null);
    if (!asked || asked.result.problem || risk === undefined) return undefined;
    return attempt(problem, async () => {
      const found = await post("/v1/classify", { text: asked.text, model: asked.model, risk, queue: false }, signal);
      if (signal.aborted) return;
      const { labels } = found.results[0];
      sentence.textContent = inWords(labels, risk, modelInfo(asked.model).guarantee);
      onAnswer(labels);
    }, signal);
  };
  const later = afterPause(ask, () => 120);
  slider.addEventListener("input", () => {
    name();
    later();
  });

  return {
    element,
    show(asked) {
      const guarantee = modelInfo(asked.model)?.guarantee;
      run = asked;
      element.hidden = !guarantee;
      risks = guarantee ? RISKS.filter((risk) => risk >= guarantee.least_risk) : [];
      slider.max = String(risks.length);
      name();
      ask();
    },
  };
}

function inWords(labels, risk, guarantee) {
  const why = guarantee.is_proven ? `guaranteed by ${count(guarantee.documents)} documents kept out of training` : `estimated by cross-validation on ${count(guarantee.documents)} documents, not guaranteed`;
  const named = labels.map((label) => label.path.join(JOIN)).join(" and ");
  if (!labels.length) return `With a risk of ${inPercent(risk)} there is no label: no branch is likely enough (${why}).`;
  if (guarantee.kind === "risk-control") return `With a risk of ${inPercent(risk)} the labels are ${named}: on average over texts, at most this fraction of the labels is wrong (${why}).`;
  return `With a risk of ${inPercent(risk)} the prediction is ${named}: it is wrong for at most this fraction of texts (${why}).`;
}

function inPercent(risk) {
  return `${Number((100 * risk).toFixed(1))}%`;
}
