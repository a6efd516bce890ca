// The dialog that asks for a key. Ids for tests: #key-dialog, #key, #key-send, #key-cancel.

import { button, el, field } from "/page/dom.js";

let waiting = null;

/** The key that the person types, or null. Who asks while the dialog is open gets the same answer. */
export function askForKey(problem) {
  waiting ??= show(problem).finally(() => {
    waiting = null;
  });
  return waiting;
}

function show(problem) {
  return new Promise((resolve) => {
    const input = el("input", { type: "password", id: "key", autocomplete: "off", required: true, spellcheck: "false" });
    const dialog = el("dialog", { id: "key-dialog", "aria-labelledby": "key-title" });
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", { id: "key-title" }, "This server needs a key"),
      el("p", {}, "Ask the person who runs it. The key is kept until you close this tab, and sent to this server only."),
      problem && el("p", { class: "problem", role: "alert" }, problem),
      field("Key", input),
      el("div", { class: "actions" }, el("button", { type: "submit", class: "main", id: "key-send" }, "Go on"),
        button("Not now", () => dialog.close(), { id: "key-cancel" })),
    );
    form.addEventListener("submit", () => dialog.close(input.value.trim()));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || null);
    });
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
  });
}
