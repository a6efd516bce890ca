// A table that a person chooses: its file, encoding and columns, with a preview. The server says how it reads the table, the
// person may overrule it, and what is shown here is what is sent.
// Ids for tests, after the stem (batch, evaluate): -file, -sheet, -encoding, -columns, -labels, -reads, -preview, -file-problem.

import { ask, makeLane } from "/page/api.js";
import { drawPreview, joinedText, makeColumnPicker, namesLine } from "/page/columns.js";
import { el, field, replace, shortened } from "/page/dom.js";
import { ACCEPTED, acceptDrop, kindOf, sheetKindOf } from "/page/drop.js";
import { makeEncodingChooser } from "/page/encodings.js";
import { attempt, showNote } from "/page/notices.js";
import { sampleOf } from "/page/sample.js";
import { onModel, state } from "/page/state.js";

const EXAMPLE = 160; // characters of the first text

/** The chooser; `onChange()` is called whenever `table()` may have changed. */
export function makeTableChooser({ stem, label, wantsLabels = false, onChange }) {
  const lane = makeLane();
  const file = el("input", { type: "file", id: `${stem}-file`, accept: ACCEPTED });
  const chosen = el("strong", { class: "chosen" });
  const problem = el("div", { id: `${stem}-file-problem` });
  const reads = el("p", { id: `${stem}-reads`, class: "reads", "aria-live": "polite" });
  const preview = el("div", { id: `${stem}-preview` });
  const sheet = el("input", { id: `${stem}-sheet`, autocomplete: "off", size: "14", placeholder: "the only one" });
  const sheetField = field("Sheet", sheet);
  const encoding = makeEncodingChooser({ id: `${stem}-encoding`, onChange: () => look() });
  const encodingField = field("Encoding", encoding.select);
  const texts = makeColumnPicker({ legend: "Columns of the text", id: `${stem}-columns`, onChange: () => draw() });
  const labels = wantsLabels && makeColumnPicker({ legend: "Columns of the true labels", id: `${stem}-labels`, onChange: () => draw() });
  const pickers = [texts, labels].filter(Boolean);
  const options = el("div", { class: "stack", hidden: true }, el("div", { class: "options-row" }, sheetField, encodingField),
    pickers.map((picker) => picker.element), reads, preview);
  const element = el("div", { class: "stack" },
    el("div", { class: "drop-zone" }, el("label", { for: file.id }, label), file, chosen), problem, options);
  let given = null; // the file that was chosen
  let source = null; // what is sent: the file, or the sheet of it as CSV
  let found = null; // what the server says about it

  const take = (one) => {
    const isKnown = kindOf(one) || sheetKindOf(one);
    [given, source, found] = [isKnown ? one : null, null, null];
    chosen.textContent = isKnown ? `${one.name}, ${sizeOf(one.size)}` : "";
    encoding.forget();
    sheet.value = "";
    for (const picker of pickers) picker.forget();
    if (isKnown) return look();
    lane.stop();
    options.hidden = true;
    showNote(problem, `${one.name} is not a table that the page can send. Choose a .csv, .tsv, .jsonl, .xlsx or .ods file; other programs can save their tables as CSV.`, "problem");
    return onChange();
  };

  // Ask the server how it reads the table.
  const look = () => {
    const signal = lane.start();
    found = null;
    onChange();
    return attempt(problem, async () => {
      const kind = sheetKindOf(given);
      sheetField.hidden = !kind;
      encodingField.hidden = Boolean(kind);
      options.setAttribute("aria-busy", "true");
      try {
        source ??= kind ? await sheetAsCsv(given, kind, sheet.value.trim(), signal) : { body: given, type: kindOf(given) };
        const answer = await previewOf(source, encoding.value(), signal);
        if (signal.aborted) return;
        found = answer;
        if (!encoding.value()) encoding.tell(found.encoding);
        texts.show(found.columns, found.text);
        if (labels) labels.show(found.columns, found.label);
      } finally {
        if (!signal.aborted) finish();
      }
    }, signal);
  };

  const finish = () => {
    options.removeAttribute("aria-busy");
    options.hidden = false;
    for (const picker of pickers) picker.element.hidden = !found;
    draw();
  };

  const draw = () => {
    if (found) {
      const used = [...texts.names().map((name) => [name, "text"]), ...(labels ? labels.names().map((name) => [name, "label"]) : [])];
      replace(reads, sentenceOf(found, texts.names(), labels && labels.names()));
      replace(preview, drawPreview(found, new Map(used)));
    } else replace(reads), replace(preview);
    onChange();
  };

  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  sheet.addEventListener("change", () => {
    source = null;
    look();
  });
  onModel(() => given && look());
  acceptDrop(element, take);
  return {
    element,
    /** What to send, or null while something is missing. */
    table() {
      const names = { text: texts.names(), label: labels ? labels.names() : undefined };
      const isReady = found && names.text.length > 0 && (!labels || names.label.length > 0);
      return isReady ? { ...source, name: given.name, params: { ...names, encoding: found.encoding } } : null;
    },
  };
}

async function sheetAsCsv(file, type, sheet, signal) {
  const response = await ask("/v1/tables/csv", { method: "POST", params: { sheet }, headers: { "Content-Type": type }, body: file, signal });
  return { body: await response.blob(), type: "text/csv" };
}

async function previewOf({ body, type }, encoding, signal) {
  const sample = await sampleOf(body);
  const params = { model: state.model, encoding, cut: sample.isCut };
  const response = await ask("/v1/tables/preview", { method: "POST", params, headers: { "Content-Type": type }, body: sample.body, signal });
  return response.json();
}

function sentenceOf({ columns, rows, problem }, texts, labels) {
  if (!texts.length) return problem ? `Choose the column of the text. The server says: ${problem}` : "Choose the column of the text.";
  if (labels && !labels.length) return "Choose the column of the true labels.";
  const first = rows.map((row) => joinedText(Object.fromEntries(columns.map((name, i) => [name, row[i]])), texts)).find(Boolean) ?? "";
  return ["The model reads ", namesLine(texts), texts.length > 1 && ", joined", labels && [", and the true labels are in ", namesLine(labels)].flat(),
    first ? [". The first text: ", el("q", { dir: "auto" }, shortened(first, EXAMPLE))] : "."].flat();
}

function sizeOf(bytes) {
  return bytes < 1000 ? `${bytes} bytes` : bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
