// Choosing columns of a table, and its first rows. For tests: #ID, #ID input[value="COLUMN"].

import { el, newId, replace, shortened } from "/page/dom.js";

const SHOWN_COLUMNS = 20;
const SHOWN_CELL = 90; // characters

/** Boxes to tick, one for each column; `names()` gives the chosen ones, those that the server told first in its order. */
export function makeColumnPicker({ legend, id, onChange }) {
  const list = el("div", { class: "ticks" });
  const element = el("fieldset", { id, class: "columns-picker" }, el("legend", {}, legend), list);
  let boxes = [];
  let isTouched = false;
  list.addEventListener("change", () => {
    isTouched = true;
    onChange();
  });
  return {
    element,
    names: () => boxes.filter((box) => box.checked).map((box) => box.value),
    /** Show the columns of a table; what the person has ticked stays, if the table still has it. */
    show(columns, told) {
      const ticked = boxes.filter((box) => box.checked).map((box) => box.value);
      const keeps = isTouched && ticked.length > 0 && ticked.every((name) => columns.includes(name));
      const chosen = keeps ? ticked : told;
      const ordered = [...chosen, ...columns.filter((name) => !chosen.includes(name))];
      boxes = ordered.map((name) => el("input", { type: "checkbox", value: name, checked: chosen.includes(name) }));
      isTouched = keeps;
      replace(list, boxes.map((box) => el("label", { class: "check" }, box, el("bdi", {}, box.value))));
    },
    forget() {
      [boxes, isTouched] = [[], false];
      replace(list);
    },
  };
}

/** The first rows; `kinds` says of a column what it is used for. */
export function drawPreview({ columns, rows }, kinds) {
  const shown = [...columns.filter((name) => kinds.has(name)), ...columns.filter((name) => !kinds.has(name))].slice(0, SHOWN_COLUMNS);
  const places = shown.map((name) => columns.indexOf(name));
  const captionId = newId("preview");
  const head = shown.map((name) => el("th", { class: "text", scope: "col" }, el("bdi", {}, name), kinds.has(name) && [" ", el("span", { class: "badge" }, kinds.get(name))]));
  const body = rows.map((row) => el("tr", {}, places.map((place, i) => el("td", { class: `text ${kinds.has(shown[i]) ? "" : "unused"}`, dir: "auto" }, shortened(row[place], SHOWN_CELL)))));
  const left = columns.length - shown.length;
  return el("div", { class: "scroll preview", tabindex: "0", role: "group", "aria-labelledby": captionId }, el("table", {},
    el("caption", { id: captionId }, `The first rows${left > 0 ? `, without ${left} columns` : ""}`),
    el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

/** The text of a row, as the server joins it from its columns. */
export function joinedText(row, columns) {
  const cells = columns.map((name) => row[name]).filter((cell) => cell !== null && cell !== undefined && cell !== "");
  return cells.map((cell) => (typeof cell === "object" ? JSON.stringify(cell) : String(cell))).join("\n");
}

/** Names in a sentence: title, subject and body. */
export function namesLine(names) {
  return names.map((name, i) => [i > 0 && (i === names.length - 1 ? " and " : ", "), el("b", {}, el("bdi", {}, name))]).flat();
}
