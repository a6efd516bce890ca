// How often people agree with the model. Id for tests: #agreement.

import { get, makeLane } from "/page/api.js";
import { bar, count, el, percent, replace } from "/page/dom.js";
import { attempt } from "/page/notices.js";
import { drawFigures, drawTable } from "/page/report.js";
import { state } from "/page/state.js";

/** The panel; `load()` fetches the figures anew. */
export function makeAgreement() {
  const lane = makeLane();
  const body = el("div");
  const problem = el("div");
  const element = el("section", { class: "card", id: "agreement", "aria-labelledby": "agreement-title" },
    el("h2", { id: "agreement-title" }, "Agreement"), problem, body);
  const load = () => {
    const signal = lane.start();
    return attempt(problem, async () => {
      const summary = await get("/v1/reviews/summary", { model: state.model }, signal);
      if (!signal.aborted) replace(body, drawSummary(summary));
    }, signal);
  };
  return { element, load };
}

function drawSummary(summary) {
  return [
    drawFigures([["waiting", count(summary.open)], ["reviewed", count(summary.reviewed)], ["of the predictions were right", percent(summary.agreement)],
      ["corrected", count(summary.corrected)], ["rejected", count(summary.rejected)]]),
    summary.by_level.length > 0 && [el("h3", {}, "Right at each level"), el("ul", { class: "bars" }, summary.by_level.map(drawLevel))],
    summary.by_reviewer.length > 0 && [el("h3", {}, "By person"), drawTable(["who", "decisions", "right", "corrected", "rejected"],
      summary.by_reviewer.map((row) => [row.reviewer, row.decisions, row.accepted, row.corrected, row.rejected].map(String)), [0])],
    drawBetween(summary.between_reviewers),
  ];
}

function drawLevel(level) {
  return el("li", {}, el("span", {}, `Level ${level.depth + 1}`), bar(level.agreement, "green"), el("span", { class: "number" }, percent(level.agreement)));
}

function drawBetween(between) {
  if (!between?.pairs) return null;
  return el("p", { class: "hint" }, `Two people judged the same document ${count(between.pairs)} times, and said the same ${count(between.same)} times (${percent(between.same / between.pairs)}).`);
}
