// Classify one text and see why.
// Ids for tests: #text, #classify-go, #text-clear, #text-file, #classify-problem, #headline, #answer (the tree; [data-node]),
// #marked, #why, #why-steps button[data-step], #why-not, #why-back, certainty.js: #certainty, #certainty-value,
// #certainty-sentence, #by-probability, #by-guarantee, and feedback.js: #say-right, #say-wrong, #ask-colleague, #feedback-note, #wrong-dialog, #wrong-label, #wrong-comment, #wrong-send.

import { makeAnswer } from "/page/prediction.js";
import { makeLane, post } from "/page/api.js";
import { makeCertainty } from "/page/certainty.js";
import { afterPause, announce, button, el, field } from "/page/dom.js";
import { acceptDrop } from "/page/drop.js";
import { makeFeedback } from "/page/feedback.js";
import { attempt, showNote } from "/page/notices.js";
import { makeSearch } from "/page/search.js";
import { modelInfo, state } from "/page/state.js";
import { answerInWords } from "/page/stops.js";
import { makeWhy } from "/page/why.js";

const RUNNERS_UP = 6;
const MAX_FILE = 8_000_000; // bytes; the server says by itself when a text has too many characters

/** The view. */
export function makeClassify() {
  const lane = makeLane();
  const asking = makeLane(); // for one more explanation of the same text
  const problem = el("div", { id: "classify-problem" });
  const input = el("textarea", { id: "text", rows: "7", dir: "auto", spellcheck: "false", placeholder: "Paste a text here, or drop a .txt file." });
  const why = makeWhy({ onBack: () => showExplanation(run.first) });
  const answer = makeAnswer({ onChoose: (item) => chooseNode(item) });
  const certainty = makeCertainty({ onStops: answer.showStops, onGuaranteed: answer.showGuaranteed });
  const feedback = makeFeedback({ current: () => run });
  const whyNot = makeSearch({ label: "Why not …?", id: "why-not", onPick: (node) => explainOther(node.label), placeholder: "Find the label you expected" });
  let run = null; // the text and the model at hand, and what has been found out about them

  const classify = async () => {
    later.cancel();
    state.text = input.value;
    const signal = lane.start();
    asking.stop();
    if (!input.value.trim()) return forget();
    const asked = { text: input.value, model: state.model };
    results.setAttribute("aria-busy", "true");
    const isDone = await attempt(problem, async () => {
      const found = await findOut(asked, signal);
      if (!signal.aborted) show({ ...asked, ...found, known: new Map(), isMultiLabel: modelInfo()?.is_multi_label });
    }, signal);
    if (!signal.aborted) results.removeAttribute("aria-busy");
    if (!isDone && !signal.aborted) forget();
    return undefined;
  };
  // A long text takes the server longer, so the pause before asking is longer, too.
  const later = afterPause(classify, () => (input.value.length > 20_000 ? 1500 : 450));

  const forget = () => {
    run = null;
    results.hidden = true;
    empty.hidden = false;
    whySection.hidden = true;
    markedCard.hidden = true;
  };

  const show = (found) => {
    run = found;
    results.hidden = false;
    empty.hidden = true;
    whySection.hidden = false;
    markedCard.hidden = !found.first;
    feedback.clear();
    if (found.first) found.known.set(found.first.explained.label, found.first);
    answer.show(found.result, [found.first].filter(Boolean));
    certainty.show(found);
    if (found.result.problem) showNote(problem, found.result.problem, "problem");
    if (found.first) showExplanation(found.first);
    else why.clear(found.unexplained);
    announce(answerInWords(found.result.labels));
  };

  const showExplanation = (explanation, step = lastChoice(explanation)) => {
    run.shown = explanation;
    why.show(explanation, run.text, step, explanation !== run.first);
    answer.mark(explanation.steps[step]);
  };
  why.onStep = (step) => (step === null ? answer.mark(null) : answer.mark(run.shown.steps[step]));

  const chooseNode = (item) => {
    const step = run.shown?.steps.findIndex((one) => one.name === item.name) ?? -1;
    if (step >= 0) return showExplanation(run.shown, step);
    return explainOther(item.label);
  };

  const explainOther = async (label) => {
    const signal = asking.start();
    const { text, model, known } = run;
    await attempt(why.problem, async () => {
      if (!known.has(label)) known.set(label, await post("/v1/explain", { text, model, label }, signal));
      if (signal.aborted) return;
      answer.show(run.result, [...known.values()]);
      certainty.show(run);
      showExplanation(known.get(label));
    }, signal);
  };

  input.addEventListener("input", () => later());
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) classify();
  });
  const take = async (file) => {
    if (file.size > MAX_FILE) return showNote(problem, `${file.name} is too large for one text. Use Batch for many texts.`, "problem");
    input.value = await file.text();
    return classify();
  };
  const clear = () => {
    input.value = "";
    classify();
    input.focus();
  };

  const textCard = drawTextCard(input, { classify, clear, take, problem });
  acceptDrop(textCard, take);
  const empty = el("div", { class: "empty" }, el("img", { src: "/page/icon.svg", alt: "", width: "56", height: "56" }),
    el("p", {}, "The prediction opens here as a branch of the taxonomy, with the probability of each node."));
  const results = el("div", { class: "results", hidden: true },
    el("div", { class: "headline-row" }, answer.headline, feedback.element), feedback.notes, answer.tree, certainty.element);
  const whySection = el("section", { class: "card", id: "why", "aria-labelledby": "why-title", hidden: true }, why.head,
    el("div", { class: "two" }, why.bars, el("div", {}, why.said, whyNot.element)));
  const markedCard = el("section", { class: "card marked-card", id: "marked", "aria-labelledby": "marked-title", hidden: true },
    el("h2", { id: "marked-title" }, "For and against, in the text"), why.marked);
  const element = el("section", { "aria-labelledby": "classify-title" },
    el("h1", { id: "classify-title" }, "Classify a text"),
    el("div", { class: "desk" }, textCard,
      el("section", { class: "card answer-card", "aria-labelledby": "answer-title" }, el("h2", { id: "answer-title" }, "Prediction"), empty, results), markedCard),
    whySection);

  return {
    element,
    open() {
      if (state.text !== input.value && state.text) input.value = state.text;
      if (input.value && (run?.model !== state.model || run?.text !== input.value)) classify();
    },
  };

  function drawTextCard(text, actions) {
    const file = el("input", { type: "file", id: "text-file", accept: ".txt,.md,text/plain", class: "unseen", tabindex: "-1", "aria-hidden": "true" });
    file.addEventListener("change", () => file.files[0] && actions.take(file.files[0]).then(() => (file.value = "")));
    return el("section", { class: "card text-card", "aria-labelledby": "text-title" },
      el("h2", { id: "text-title", class: "unseen" }, "Text"),
      field("Text", text),
      el("div", { class: "actions" },
        button("Classify", actions.classify, { class: "main", id: "classify-go", title: "Ctrl+Enter" }),
        button("Open a file…", () => file.click()), file,
        button("Clear", actions.clear, { id: "text-clear" }),
        el("span", { class: "hint" }, "Or just stop typing.")),
      actions.problem);
  }
}

// Labels and reasons are two questions. A model that cannot give reasons still gives labels.
async function findOut({ text, model }, signal) {
  const reasons = post("/v1/explain", { text, model }, signal).then((first) => ({ first }), (unexplained) => ({ unexplained }));
  const labels = await post("/v1/classify", { text, model, top: RUNNERS_UP, queue: false }, signal);
  return { result: labels.results[0], ...(await reasons) };
}

// The deepest step at which there was something to choose; where there was none, the last.
function lastChoice({ steps }) {
  const place = steps.findLastIndex((step) => step.rival || step.words.length > 0);
  return place < 0 ? steps.length - 1 : place;
}
