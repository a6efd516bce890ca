// Classify a file of texts, row by row as the answers come.
// Ids for tests: table-chooser.js with the stem batch, #batch-top, #batch-confidence, #batch-go, #batch-cancel, #batch-progress,
// #batch-status, #batch-problem, and rows.js: #batch-rows, #rows-source, #filter-text, #filter-label, #filter-below,
// #filter-problems, #sort, #page-status, #page-next, #page-previous, #download-all, #download-shown, #queue-below, #queue-go,
// #queue-note, #branches.

import { ask, lostConnection, ApiError, makeLane } from "/page/api.js";
import { announce, button, count, el, field, replace, countOf } from "/page/dom.js";
import { showProblem } from "/page/notices.js";
import { makeRows } from "/page/rows.js";
import { state } from "/page/state.js";
import { makeTableChooser } from "/page/table-chooser.js";

const REDRAW = 250; // milliseconds between looks at what has come

/** The view. */
export function makeBatch() {
  const lane = makeLane();
  const problem = el("div", { id: "batch-problem" });
  const rows = makeRows();
  const controls = makeControls();
  const progress = makeProgress(() => lane.stop());
  let isRunning = false;
  const update = () => (controls.go.disabled = isRunning || !chooser.table());
  const chooser = makeTableChooser({ stem: "batch", label: "Drop a table here (CSV, TSV, JSON Lines, Excel), or choose one", onChange: () => update() });

  const run = async () => {
    const signal = lane.start();
    const [model, table] = [state.model, chooser.table()];
    if (!table) return;
    replace(problem);
    rows.start(model);
    progress.start(table);
    isRunning = true;
    update();
    try {
      const params = { model, ...table.params, ...controls.params(), echo: true, paths: true };
      await classifyTable(table, params, signal, (columns) => rows.readFrom(columns), (found) => {
        rows.add(found);
        progress.count(found.length);
      });
      progress.end("Done");
    } catch (error) {
      const isStopped = error.name === "AbortError";
      progress.end(isStopped ? "Stopped" : "Interrupted");
      if (!isStopped) showProblem(problem, withAdvice(error), run);
    }
    rows.end();
    isRunning = false;
    update();
  };

  controls.go.addEventListener("click", run);
  const card = el("section", { class: "card", "aria-labelledby": "batch-file-title" },
    el("h2", { id: "batch-file-title" }, "File"), el("div", { class: "stack" }, chooser.element, controls.element), problem, progress.element);
  const element = el("section", { "aria-labelledby": "batch-title" }, el("h1", { id: "batch-title" }, "Classify a file"), card, rows.element);
  return { element, open() {} };
}

function makeControls() {
  const top = el("input", { type: "number", id: "batch-top", min: "1", max: "100", value: "1" });
  const confidence = el("input", { type: "number", id: "batch-confidence", min: "0", max: "100", value: "0" });
  const go = el("button", { type: "button", class: "main", id: "batch-go", disabled: true }, "Classify");
  const params = () => ({
    top: top.valueAsNumber > 1 ? top.valueAsNumber : undefined,
    threshold: confidence.valueAsNumber > 0 ? confidence.valueAsNumber / 100 : undefined,
  });
  const element = el("div", { class: "options-row" }, field("Labels per row", top), field("Confidence needed, %", confidence), go);
  return { element, go, params };
}

// What a person can do about a table that the server cannot read.
function withAdvice(error) {
  if (error.code !== "table") return error;
  return new ApiError(error.status, error.code, `${error.message} Choose other columns or another encoding above, or save the table again as CSV.`);
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
    async start(table) {
      [done, total, begun, shown] = [0, 0, performance.now(), 0];
      element.hidden = false;
      stop.hidden = false;
      meter.removeAttribute("value");
      status.textContent = "Reading the file …";
      total = await countRows(table).catch(() => 0);
      meter.max = total || 1;
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
      element.hidden = word === "Interrupted" && done === 0; // the message says it all
      if (!element.hidden) announce(status.textContent);
    },
  };
}

// Line ends are a good guess at the rows; texts with line ends in them make it too high.
async function countRows({ body, type }) {
  let ends = 0;
  let last = 10;
  for (const reader = body.stream().getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    for (let place = value.indexOf(10); place >= 0; place = value.indexOf(10, place + 1)) ends += 1;
    last = value.at(-1) ?? last;
  }
  const header = type === "application/x-ndjson" ? 0 : 1;
  return Math.max(0, ends + (last === 10 || last === 0 ? 0 : 1) - header);
}

async function classifyTable({ body, type }, params, signal, onColumns, onRows) {
  const headers = { "Content-Type": type, Accept: "application/x-ndjson" };
  const response = await ask("/v1/batch", { method: "POST", params, headers, body, signal });
  onColumns(columnsOf(response) ?? params.text);
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

// The columns that the server has read, as it says itself.
function columnsOf(response) {
  return response.headers.get("Ramify-Text")?.split(",").map(decodeURIComponent);
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
