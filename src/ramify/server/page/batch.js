// Classify a file of texts, row by row as the answers come.
// Ids for tests: #batch-file, #batch-column, #batch-top, #batch-confidence, #batch-go, #batch-cancel, #batch-progress,
// #batch-status, #batch-problem, and rows.js: #batch-rows, #filter-text, #filter-label, #filter-below, #filter-problems, #sort,
// #page-status, #page-next, #page-previous, #download-all, #download-shown, #queue-below, #queue-go, #queue-note, #branches.

import { ask, lostConnection, ApiError, makeLane } from "/page/api.js";
import { announce, button, count, el, field, replace, countOf } from "/page/dom.js";
import { acceptDrop, kindOf } from "/page/drop.js";
import { showNote, showProblem } from "/page/notices.js";
import { makeRows } from "/page/rows.js";
import { state } from "/page/state.js";

const REDRAW = 250; // milliseconds between looks at what has come

/** The view. */
export function makeBatch() {
  const lane = makeLane();
  const problem = el("div", { id: "batch-problem" });
  const rows = makeRows();
  const controls = makeControls();
  const progress = makeProgress(() => lane.stop());
  let file = null;

  const take = (chosen) => {
    file = kindOf(chosen) ? chosen : null;
    replace(problem);
    controls.chosen.textContent = file ? `Ready: ${file.name}, ${sizeOf(file.size)}` : "";
    controls.go.disabled = !file;
    if (!file) showNote(problem, `${chosen.name} is not a table the page can send. Choose a .csv, .tsv, .jsonl or .ndjson file.`, "problem");
  };

  const run = async () => {
    const signal = lane.start();
    const model = state.model;
    replace(problem);
    rows.start(model, controls.column.value.trim());
    progress.start(file);
    controls.go.disabled = true;
    try {
      await classifyFile(file, controls.params(model), signal, (found) => {
        rows.add(found);
        progress.count(found.length);
      });
      progress.end("Done");
    } catch (error) {
      progress.end(error.name === "AbortError" ? "Stopped" : "Interrupted");
      if (error.name !== "AbortError") showProblem(problem, error, run);
    }
    rows.end();
    controls.go.disabled = false;
  };

  controls.file.addEventListener("change", () => controls.file.files[0] && take(controls.file.files[0]));
  controls.go.addEventListener("click", run);
  const card = el("section", { class: "card", "aria-labelledby": "batch-file-title" },
    el("h2", { id: "batch-file-title" }, "File"), controls.element, problem, progress.element);
  acceptDrop(card, take);
  const element = el("section", { "aria-labelledby": "batch-title" }, el("h1", { id: "batch-title" }, "Classify a file"), card, rows.element);
  return { element, open() {} };
}

function makeControls() {
  const file = el("input", { type: "file", id: "batch-file", accept: ".csv,.tsv,.tab,.jsonl,.ndjson" });
  const column = el("input", { id: "batch-column", autocomplete: "off", placeholder: "detected", size: "14" });
  const top = el("input", { type: "number", id: "batch-top", min: "1", max: "100", value: "1" });
  const confidence = el("input", { type: "number", id: "batch-confidence", min: "0", max: "100", value: "0" });
  const go = el("button", { type: "button", class: "main", id: "batch-go", disabled: true }, "Classify");
  const chosen = el("strong", { class: "chosen" });
  const params = (model) => ({
    model, text: column.value.trim(), echo: true, paths: true,
    top: top.valueAsNumber > 1 ? top.valueAsNumber : undefined,
    threshold: confidence.valueAsNumber > 0 ? confidence.valueAsNumber / 100 : undefined,
  });
  const element = el("div", { class: "stack" },
    el("div", { class: "drop-zone" }, el("label", { for: "batch-file" }, "Drop a CSV, TSV, JSONL or NDJSON file here, or choose one"), file, chosen),
    el("div", { class: "options-row" }, field("Column of the texts", column), field("Labels per row", top), field("Confidence needed, %", confidence), go));
  return { element, file, column, go, chosen, params };
}

function makeProgress(cancel) {
  const meter = el("progress", { id: "batch-progress", "aria-label": "Rows done", max: "1", value: "0" });
  const status = el("p", { id: "batch-status", role: "status" });
  const stop = button("Cancel", cancel, { id: "batch-cancel" });
  const element = el("div", { class: "progress", hidden: true }, meter, status, stop);
  let done, total, begun, shown;

  const draw = (isLast, word = "") => {
    const seconds = (performance.now() - begun) / 1000;
    const speed = seconds > 0.2 ? `, ${count(Math.round(done / seconds))} rows per second` : "";
    meter.value = total ? Math.min(done, total) : 0;
    const progress = isLast || !total ? countOf(done, "row") : `${count(done)} of about ${countOf(total, "row")}`;
    status.textContent = `${word && `${word}: `}${progress}${speed}.`;
    shown = performance.now();
  };
  return {
    element,
    async start(file) {
      [done, total, begun, shown] = [0, 0, performance.now(), 0];
      element.hidden = false;
      stop.hidden = false;
      meter.removeAttribute("value");
      status.textContent = "Sending the file …";
      total = await countRows(file);
      meter.max = Math.max(total, 1);
    },
    count(number) {
      done += number;
      if (performance.now() - shown > REDRAW) draw(false);
    },
    end(word) {
      total = Math.max(done, word === "Done" ? 1 : total);
      meter.max = total;
      draw(true, word);
      stop.hidden = true;
      announce(status.textContent);
    },
  };
}

// Line ends are a good guess at the rows; texts with line ends in them make it too high.
async function countRows(file) {
  let ends = 0;
  let last = 10;
  for (const reader = file.stream().getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    for (let place = value.indexOf(10); place >= 0; place = value.indexOf(10, place + 1)) ends += 1;
    last = value.at(-1) ?? last;
  }
  const header = kindOf(file) === "application/x-ndjson" ? 0 : 1;
  return Math.max(0, ends + (last === 10 ? 0 : 1) - header);
}

async function classifyFile(file, params, signal, onRows) {
  const headers = { "Content-Type": kindOf(file), Accept: "application/x-ndjson" };
  const response = await ask("/v1/batch", { method: "POST", params, headers, body: file, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await read(reader);
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    onRows(lines.filter(Boolean).map(parseRow));
    if (done) return;
  }
}

async function read(reader) {
  try {
    return await reader.read();
  } catch (error) {
    throw error.name === "AbortError" ? error : lostConnection();
  }
}

// A stream that breaks off says so in its last line.
function parseRow(line) {
  const row = JSON.parse(line);
  if (row.error) throw new ApiError(503, row.error.code, `The answers broke off: ${row.error.message}`);
  return row;
}

function sizeOf(bytes) {
  return bytes < 1000 ? `${bytes} bytes` : bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
