// Finding a label (the ARIA combobox pattern). For tests: input[role=combobox], [role=option][data-node="NAME"], .chips .chip.

import { get, makeLane } from "/page/api.js";
import { afterPause, announce, button, el, newId, pathLine, replace, countOf } from "/page/dom.js";
import { showProblem } from "/page/notices.js";
import { state } from "/page/state.js";

const LIMIT = 20;

/** A box that searches the taxonomy; `onPick(node)` gets what was chosen. `model()` says whose taxonomy. */
export function makeSearch({ label, id, onPick, model = () => state.model, keepsText = false, placeholder = "Type a few letters of a label" }) {
  const listId = newId("options");
  const input = el("input", {
    type: "search", id, role: "combobox", autocomplete: "off", spellcheck: "false", placeholder,
    "aria-expanded": "false", "aria-controls": listId, "aria-autocomplete": "list",
  });
  const list = el("ul", { role: "listbox", id: listId, class: "options", hidden: true, "aria-label": "Labels found" });
  const note = el("div", { class: "options-note" });
  const lane = makeLane();
  let matches = [];
  let active = -1;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const pick = (node) => {
    lane.stop();
    find.cancel();
    input.value = keepsText ? node.title : "";
    close();
    replace(note);
    onPick(node);
  };
  const activate = (place) => {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = (place + matches.length) % matches.length;
    const option = list.children[active];
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  };
  const show = (answer) => {
    matches = answer.matches;
    active = -1;
    replace(list, matches.map((node) => drawOption(node, () => pick(node))));
    list.hidden = !matches.length;
    input.setAttribute("aria-expanded", String(matches.length > 0));
    const nearest = !matches.length && answer.did_you_mean;
    const sentence = nearest ? `No label has all these words. Did you mean “${nearest}”?`
      : !matches.length ? "No label has all these words in its path."
      : answer.total > matches.length ? `The first ${matches.length} of ${countOf(answer.total, "label")}; type more to refine the search.` : "";
    const useNearest = () => {
      input.value = nearest;
      input.focus();
      run();
    };
    const hint = nearest ? ["No label has all these words. Did you mean ", button(nearest, useNearest, { class: "link", data: { action: "did-you-mean" } }), "?"] : sentence;
    replace(note, sentence && el("p", { class: "hint" }, hint));
    announce(matches.length ? `${countOf(matches.length, "label")} found. Use the arrow keys.` : sentence);
  };
  const run = async () => {
    const query = input.value.trim();
    const signal = lane.start();
    if (!query) return close();
    try {
      const answer = await get("/v1/taxonomy/search", { model: model(), query, limit: LIMIT }, signal);
      if (!signal.aborted) show(answer);
    } catch (error) {
      if (!signal.aborted) showProblem(note, error, run);
    }
  };
  const find = afterPause(run, () => 150);

  input.addEventListener("input", () => find());
  input.addEventListener("blur", () => setTimeout(close, 150)); // after the click on an option has landed
  input.addEventListener("keydown", (event) => {
    const isOpen = !list.hidden && matches.length > 0;
    if (event.key === "ArrowDown" && isOpen) activate(active + 1);
    else if (event.key === "ArrowUp" && isOpen) activate(active < 0 ? -1 : active - 1);
    else if (event.key === "Enter" && isOpen) pick(matches[Math.max(active, 0)]);
    else if (event.key === "Escape" && isOpen) close();
    else if (event.key === "Enter") run();
    else return;
    event.preventDefault();
    event.stopPropagation(); // Escape closes the list, not the dialog around it
  });

  const element = el("div", { class: "search" }, el("label", { for: input.id ||= newId("search") }, label),
    el("div", { class: "search-box" }, input, list), note);
  return { element, input };
}

function drawOption(node, onPick) {
  const option = el("li", { role: "option", id: newId("option"), "aria-selected": "false", data: { node: node.name } }, pathLine(node.path));
  option.addEventListener("pointerdown", (event) => event.preventDefault()); // the box keeps the focus
  option.addEventListener("click", onPick);
  return option;
}

/** A search that collects labels: many if `many` says so, else the last one chosen. Enter in an empty box sends them. */
export function makeLabelPicker({ label, id, many, model, onChange = () => {}, onSend }) {
  let picked = [];
  const chips = el("ul", { class: "chips", "aria-label": "Chosen labels" });
  const draw = () => {
    replace(chips, picked.map((node) => el("li", { class: "chip" }, pathLine(node.path),
      button("Remove", () => set(picked.filter((one) => one !== node)), { class: "link", "aria-label": `Remove ${node.path.at(-1)}` }))));
    onChange(picked);
  };
  const set = (nodes) => {
    picked = nodes;
    draw();
  };
  const add = (node) => set(many() ? [...picked.filter((one) => one.label !== node.label), node] : [node]);
  const search = makeSearch({ label, id, model, onPick: add });
  search.input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || search.input.value || !picked.length) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    onSend();
  }, { capture: true });
  return { element: el("div", { class: "picker" }, search.element, chips), input: search.input, set, add, labels: () => picked.map((node) => node.label) };
}
