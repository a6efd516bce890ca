// One document of the review queue: its text, what the model says, what people said. For tests: [data-review], [data-pick].

import { button, count, el, pathLine, percent, when } from "/page/dom.js";
import { ladder } from "/page/ladder.js";

const SHOWN = 20_000; // characters; the whole text is a click away
const SAID = { accept: "accepted it", correct: "corrected it", reject: "rejected it" };

/** Draw a document; `add(label)` is called when a person picks one of the model's labels. */
export function drawDocument(document, { add }) {
  return el("div", { data: { review: document.id } },
    el("div", { class: "marked", dir: "auto", tabindex: "0", role: "group", "aria-label": "Text" }, document.text.slice(0, SHOWN),
      document.text.length > SHOWN && ` … (${count(document.text.length)} characters)`),
    el("p", { class: "hint" }, `Queued ${when(document.queued_at)} by `, el("bdi", {}, document.queued_by), document.source && [" from ", el("bdi", {}, document.source)], "."),
    el("h3", {}, `Prediction, confidence ${percent(document.confidence)}`),
    document.labels.length ? document.labels.map((label) => ladder(label.path, label.probabilities)) : el("p", {}, "No label."),
    drawPicks(document, add), drawDecisions(document.decisions));
}

function drawPicks({ labels, others }, add) {
  const options = [...(labels.length > 1 ? labels : []), ...others].slice(0, 6);
  if (!options.length) return null;
  const pick = (label) => button([pathLine(label.path.slice(-2)), ` ${percent(label.probability)}`], () => add(label), { class: "pick", data: { pick: label.label }, title: "Take this label" });
  return el("div", {}, el("h3", {}, "Other candidates"), el("div", { class: "picks" }, options.map(pick)));
}

function drawDecisions(decisions) {
  if (!decisions.length) return null;
  const line = (decision) => el("li", {}, el("b", {}, el("bdi", {}, decision.reviewer)), ` ${SAID[decision.action] ?? decision.action}, ${when(decision.at)}`,
    decision.labels?.length > 0 && [": ", el("bdi", {}, decision.labels.join("; "))], decision.comment && el("div", { class: "hint", dir: "auto" }, decision.comment));
  return el("div", {}, el("h3", {}, "Decisions"), el("ul", { class: "decisions" }, decisions.map(line)));
}
