// Documents that wait for a person, one at a time, least certain first.
// Ids for tests: #review-name, #review-status, #review-document, #review-place, #review-accept, #review-correct,
// #review-label, #review-reject, #review-comment, #review-next, #review-previous, #review-undo, #review-note,
// #review-problem, #review-export-csv, #review-export-jsonl, and agreement.js: #agreement.
// Keys, outside of fields: A accept, C correct, R reject, J or → next, K or ← previous.

import { makeAgreement } from "/page/agreement.js";
import { download, get, makeLane } from "/page/api.js";
import { announce, button, count, el, field, replace } from "/page/dom.js";
import { drawDocument } from "/page/review-document.js";
import { decide } from "/page/feedback.js";
import { attempt, showNote } from "/page/notices.js";
import { makeLabelPicker } from "/page/search.js";
import { keepReviewer, modelInfo, reviewer, state } from "/page/state.js";

const PAGE = 50;
const SAID = { accept: "Accepted", correct: "Corrected", reject: "Rejected" };

/** The view. */
export function makeReview() {
  const lane = makeLane();
  const boxes = Object.fromEntries(["document", "problem", "note"].map((name) => [name, el("div", { id: `review-${name}` })]));
  const place = el("p", { id: "review-place", class: "hint", "aria-live": "polite" });
  const status = el("select", { id: "review-status" }, [["open", "Waiting"], ["done", "Done"], ["all", "All"]].map(([value, name]) => el("option", { value }, name)));
  const comment = el("input", { id: "review-comment", autocomplete: "off" });
  const agreement = makeAgreement();
  const picker = makeLabelPicker({
    label: "The right label", id: "review-label", many: () => modelInfo()?.is_multi_label, model: () => current()?.model ?? state.model,
    onChange: (picked) => (buttons.correct.disabled = !picked.length || !current()), onSend: () => send("correct"),
  });
  picker.input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || picker.input.value) return;
    picker.input.blur();
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
  const act = (action) => () => send(action);
  const buttons = {
    accept: button("Accept", act("accept"), { id: "review-accept", class: "main", "aria-keyshortcuts": "A" }),
    correct: button("Correct", act("correct"), { id: "review-correct", disabled: true, "aria-keyshortcuts": "C" }),
    reject: button("Reject", act("reject"), { id: "review-reject", class: "bad", "aria-keyshortcuts": "R", title: "It belongs nowhere in this taxonomy, or should not be used in training." }),
    previous: button("Previous", () => go(-1), { id: "review-previous", "aria-keyshortcuts": "K" }),
    next: button("Next", () => go(1), { id: "review-next", "aria-keyshortcuts": "J" }),
  };
  let queue = { documents: [], total: 0, at: 0 };
  let isSending = false;

  const current = () => queue.documents[queue.at];

  const load = () => {
    const signal = lane.start();
    return attempt(boxes.problem, async () => {
      const found = await fetchPage(0, signal);
      if (signal.aborted) return;
      queue = { ...found, at: 0 };
      draw();
    }, signal);
  };
  const fetchPage = (offset, signal) => get("/v1/reviews", { status: status.value, model: state.model, order: status.value === "open" ? "uncertain" : "recent", offset, limit: PAGE }, signal);

  const go = (step) => attempt(boxes.problem, async () => {
    const to = queue.at + step;
    if (to >= queue.documents.length && queue.documents.length < queue.total) {
      const more = await fetchPage(queue.documents.length);
      const known = new Set(queue.documents.map((document) => document.id));
      queue.documents.push(...more.documents.filter((document) => !known.has(document.id)));
    }
    queue.at = Math.max(0, Math.min(queue.documents.length - 1, to));
    draw();
  });

  const send = async (action) => {
    const document = current();
    if (!document || isSending || (action === "correct" && !picker.labels().length)) return;
    isSending = true;
    await attempt(boxes.problem, async () => {
      const values = { action, comment: comment.value.trim() || undefined };
      if (action === "correct") values.labels = picker.labels();
      showDecided(document, await decide(document.id, values), action);
    });
    isSending = false;
  };

  // A decided document leaves the queue of those that wait, and stays in the other lists.
  const showDecided = async (document, decided, action) => {
    const at = queue.documents.indexOf(document);
    if (status.value === "open") {
      queue.documents.splice(at, 1);
      queue.total -= 1;
      queue.at = Math.min(queue.at, Math.max(0, queue.documents.length - 1));
    } else queue.documents[at] = decided;
    const undo = button("Change that", () => bringBack(decided), { class: "small", id: "review-undo" });
    showNote(boxes.note, el("span", {}, `${SAID[action]}. `), "done");
    boxes.note.firstChild.append(undo);
    announce(SAID[action]);
    agreement.load();
    if (!queue.documents.length && queue.total > 0) await load();
    else draw();
  };
  const bringBack = (document) => {
    const known = queue.documents.findIndex((one) => one.id === document.id);
    if (known >= 0) queue.at = known;
    else queue.documents.splice(queue.at, 0, document);
    queue.total += known < 0 ? 1 : 0;
    replace(boxes.note);
    draw();
  };

  const draw = () => {
    const document = current();
    comment.value = "";
    picker.set([]);
    replace(boxes.document, document ? drawDocument(document, { add: (label) => picker.add(label) }) : drawEmpty(status.value));
    place.textContent = document ? `${count(queue.at + 1)} of ${count(queue.total)}${status.value === "open" ? ", least certain first" : ""}.` : "";
    decision.hidden = !document;
    buttons.previous.disabled = queue.at === 0;
    buttons.next.disabled = queue.at + 1 >= queue.total;
  };

  status.addEventListener("change", () => {
    replace(boxes.note);
    load();
  });
  const decision = el("div", { class: "stack decide" }, picker.element, field("Comment (optional)", comment),
      el("div", { class: "actions" }, buttons.accept, buttons.correct, buttons.reject, el("span", { class: "gap" }), buttons.previous, buttons.next),
      el("p", { class: "hint keys-line" }, ["A", " accept ", "C", " correct, then ", "Enter", " to send ", "R", " reject ", "J", " next ", "K", " previous"].map((part, i) => (i % 2 ? part : el("kbd", {}, part)))));
  const card = el("section", { class: "card", "aria-labelledby": "document-title" },
    el("div", { class: "split" }, el("h2", { id: "document-title" }, "Document"), place), boxes.document, boxes.problem,
    decision,
    boxes.note);
  boxes.note.setAttribute("role", "status");
  const element = el("section", { "aria-labelledby": "review-title" },
    el("div", { class: "split" }, el("h1", { id: "review-title" }, "Review"), drawTools(status, boxes.problem)),
    el("div", { class: "browse" }, card, agreement.element));
  document.addEventListener("keydown", (event) => !element.hidden && element.isConnected && onKey(event, { act: send, go, correct: () => picker.input.focus() }));

  return {
    element,
    async open() {
      await Promise.all([load(), agreement.load()]);
    },
  };
}

function onKey(event, { act, go, correct }) {
  const isTyping = event.target.closest?.("input, textarea, select, dialog, [role=tree], .marked");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const actions = { a: () => act("accept"), r: () => act("reject"), c: correct, j: () => go(1), k: () => go(-1), arrowright: () => go(1), arrowleft: () => go(-1) };
  const action = actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
}

function drawEmpty(status) {
  return el("p", { class: "empty" }, status === "open"
    ? "Nothing waits for review. Texts come here from “Ask a colleague”, from “Wrong…”, and from Batch."
    : "Nothing has been reviewed yet.");
}

function drawTools(status, problem) {
  const name = el("input", { id: "review-name", autocomplete: "name", value: reviewer() ?? "", placeholder: "shown to reviewers", size: "18" });
  name.addEventListener("input", () => keepReviewer(name.value));
  const exportAs = (format) => button(`Export as ${format.toUpperCase()}`, () => attempt(problem, () => download("/v1/reviews/export", { format, model: state.model }, `reviewed.${format}`)), { id: `review-export-${format}` });
  return el("div", { class: "options-row" }, !state.session.needs_key && field("Your name", name), field("Show", status), exportAs("csv"), exportAs("jsonl"));
}
