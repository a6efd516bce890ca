// Saying whether an answer is right. Everything goes through the review queue, so that one place holds what people said.
// Ids for tests: see classify.js.

import { ApiError, post } from "/page/api.js";
import { button, el, field, replace } from "/page/dom.js";
import { attempt, showNote } from "/page/notices.js";
import { makeLabelPicker } from "/page/search.js";
import { mayReview, reviewer } from "/page/state.js";

/** The buttons beside an answer; `current()` gives {text, model, isMultiLabel} of the answer on the page. */
export function makeFeedback({ current }) {
  const note = el("div", { id: "feedback-note", role: "status" });
  const problem = el("div", { id: "feedback-problem" });
  const clear = () => [note, problem].forEach((box) => replace(box));
  const say = (work, sentence) => attempt(problem, async () => {
    replace(note);
    await work(current());
    showNote(note, sentence, "done");
  });
  const accept = () => say(async (run) => decide(await queue(run), { action: "accept" }), "Noted as right. Thank you.");
  const ask = () => say(queue, "Queued. A colleague finds it under Review.");
  const wrong = () => askForRight(current(), (values, run) =>
    say(async () => decide(await queue(run), { action: "correct", ...values }), "Noted, with the right label. Thank you."));
  const element = mayReview()
    ? el("div", { class: "actions", role: "group", "aria-label": "Is this prediction right?" },
        button("Right", accept, { id: "say-right", class: "good" }),
        button("Wrong…", wrong, { id: "say-wrong", class: "bad" }),
        button("Ask a colleague", ask, { id: "ask-colleague" }))
    : el("div", {});
  return { element, notes: el("div", {}, problem, note), clear };
}

/** Send a decision about a queued document. */
export function decide(id, values) {
  return post(`/v1/reviews/${encodeURIComponent(id)}/decisions`, { ...values, reviewer: reviewer() });
}

// A text that was queued before keeps its place and its number.
async function queue({ text, model }) {
  const { queued } = await post("/v1/reviews", { documents: [{ text, source: "page" }], model });
  if (!queued.length) throw new ApiError(422, "not-queued", "The server did not take the text into the review queue.");
  return queued[0];
}

function askForRight(run, onSend) {
  const send = el("button", { type: "submit", class: "main", id: "wrong-send", disabled: true }, "Send");
  const picker = makeLabelPicker({
    label: run.isMultiLabel ? "Which labels are right?" : "Which label is right?", id: "wrong-label",
    many: () => run.isMultiLabel, model: () => run.model, onChange: (picked) => (send.disabled = !picked.length), onSend: () => form.requestSubmit(),
  });
  const comment = el("input", { id: "wrong-comment", autocomplete: "off" });
  const dialog = el("dialog", { id: "wrong-dialog", "aria-labelledby": "wrong-title" });
  const form = el("form", { method: "dialog" }, el("h2", { id: "wrong-title" }, "What would be right?"), picker.element,
    el("p", { class: "hint keys-line" }, el("kbd", {}, "Enter"), " takes a label, and once more sends it."), field("Why? (optional)", comment), el("div", { class: "actions" }, send, button("Cancel", () => dialog.close())));
  form.addEventListener("submit", () => onSend({ labels: picker.labels(), comment: comment.value.trim() || undefined }, run));
  const leave = () => dialog.close(); // it belongs to the view that is left
  window.addEventListener("hashchange", leave);
  dialog.addEventListener("close", () => {
    window.removeEventListener("hashchange", leave);
    dialog.remove();
  });
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  picker.input.focus();
}
