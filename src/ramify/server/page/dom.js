// Building elements. Whatever comes from people or the server goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** A new HTML element; `props` are attributes, besides `on` (listeners), `data` (data-…) and `vars` (custom properties). */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** A new SVG element, with the same `props`. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) setProp(node, name, value);
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function setProp(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
  else if (name === "data") for (const [key, text] of Object.entries(value)) node.dataset[key] = text;
  else if (name === "vars") for (const [key, number] of Object.entries(value)) node.style.setProperty(`--${key}`, number);
  else node.setAttribute(name, value === true ? "" : value);
}

/** Put new children in place of the old ones. */
export function replace(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
}

/** A button that does something. */
export function button(text, onClick, props = {}) {
  return el("button", { type: "button", ...props, on: { click: onClick } }, text);
}

let ids = 0;
/** An id that no other element has. */
export function newId(stem) {
  ids += 1;
  return `${stem}-${ids}`;
}

/** A labelled form control. */
export function field(label, control, hint = null) {
  control.id ||= newId("field");
  const note = hint && el("span", { class: "hint", id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, note);
}

/** Say something to those who listen rather than look. */
export function announce(sentence) {
  document.getElementById("announcer").textContent = sentence;
}

/** Call `work` once calls have paused for `wait()` milliseconds. */
export function afterPause(work, wait) {
  let timer;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait());
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** A share as people read it: 83%, never a rounded 0% or 100% for what is not quite that. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  if (share > 0 && share < 0.005) return "<1%";
  if (share < 1 && share >= 0.995) return ">99%";
  return `${Math.round(share * 100)}%`;
}

/** A whole number with its thousands apart. */
export function count(number) {
  return number === null || number === undefined ? "–" : number.toLocaleString("en");
}

/** How many of something there are: "1 row", "2,000 rows". */
export function countOf(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A number with its sign and a true minus. */
export function signed(number, digits = 2) {
  const size = Math.abs(number).toFixed(digits);
  return Number(size) === 0 ? size : `${number < 0 ? "−" : "+"}${size}`;
}

/** The beginning of a text, without a broken word at its end. */
export function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most).replace(/\s\S{0,20}$/, "")} …` : text;
}

/** A date as people read it. */
export function when(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? String(iso) : date.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

/** A path of titles, one after the other, with separators that are not read aloud. */
export function pathLine(titles, props = {}) {
  const parts = titles.map((title, i) => [i > 0 && el("span", { class: "gt", "aria-hidden": "true" }, "›"), i > 0 && " ", el("bdi", {}, title)]); // the line may break at the space
  return el("span", { ...props, class: `path ${props.class ?? ""}` }, parts.flat());
}

/** A bar from 0 to 1; the number beside it says the same to those who do not see it. */
export function bar(share, kind = "") {
  return el("span", { class: `meter ${kind}`, "aria-hidden": "true", vars: { share: Math.max(0, Math.min(1, share ?? 0)) } });
}
