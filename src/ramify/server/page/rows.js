// What came of a batch: all rows in memory, a page of them on the screen. Ids for tests: see batch.js.

import { post, saveFile } from "/page/api.js";
import { joinedText, namesLine } from "/page/columns.js";
import { bar, button, count, el, field, newId, percent, replace, shortened, countOf } from "/page/dom.js";
import { attempt, showNote } from "/page/notices.js";
import { mayReview, state } from "/page/state.js";
import { csvOf } from "/page/table-file.js";

const PAGE = 25;
const REDRAW = 300; // milliseconds
const TEXT = 240; // characters of a text in the table
const EXAMPLE = 120; // characters of the text that says what was read
const SUGGESTED = 300; // labels for the filter
const CHUNK = { texts: 500, characters: 1_000_000 }; // of one request to queue documents
const ORDERS = { file: "As in the file", unsure: "Least confident first", sure: "Most confident first" };

/** The table; `start`, `readFrom(columns)`, then `add(rows)` as they come, then `end`. It is hidden while it has no rows. */
export function makeRows() {
  const filters = makeFilters(() => redraw(true));
  const body = el("tbody");
  const pager = makePager(() => drawPage());
  const branches = el("ul", { class: "bars", id: "branches" });
  const note = el("div", { id: "queue-note", role: "status" });
  const title = el("h2", { id: "rows-title" });
  const source = el("p", { class: "hint", id: "rows-source" });
  let all = [];
  let shown = [];
  let run = {};
  let timer = null;

  const redraw = (fromStart = false) => {
    timer = null;
    shown = filters.apply(all);
    if (fromStart) pager.reset();
    drawPage();
    drawBranches(branches, all, (branch) => filters.setLabel(branch));
    drawSource(source, run.columns, all);
    queueing.update();
  };
  const redrawSoon = () => (timer ??= setTimeout(redraw, REDRAW));
  const drawPage = () => {
    const [start, end] = pager.show(shown.length, all.length);
    replace(body, shown.slice(start, end).map(drawRow));
  };
  const save = (rows, name) => saveFile(new Blob(csvOf(rows), { type: "text/csv;charset=utf-8" }), name);
  const queueing = makeQueueing({ rows: () => all, run: () => run, note });

  const element = el("div", { hidden: true },
    el("section", { class: "card", "aria-labelledby": "branches-title" }, el("h2", { id: "branches-title" }, "By branch"), branches),
    el("section", { class: "card", "aria-labelledby": "rows-title" }, title, source, filters.element,
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-labelledby": "rows-title" }, drawTable(body)), pager.element,
      el("div", { class: "actions" },
        button("Download all as CSV", () => save(all, "ramify-all.csv"), { id: "download-all" }),
        button("Download the rows found", () => save(shown, "ramify-found.csv"), { id: "download-shown" })),
      el("p", { class: "hint" }, "In the file, a text that begins with =, +, - or @ gets an apostrophe in front, so that no spreadsheet takes it for a formula."),
      mayReview() && queueing.element, note));

  return {
    element,
    start(model) {
      [all, shown, run] = [[], [], { model, columns: [] }];
      element.hidden = true;
      filters.forget();
      title.textContent = `Rows, classified by ${model}`;
      replace(note);
      redraw(true);
    },
    readFrom(columns) {
      run.columns = columns;
    },
    add(rows) {
      for (const row of rows) all.push(toRecord(row, run.columns));
      filters.suggest(rows);
      element.hidden = !all.length;
      redrawSoon();
    },
    end: redraw,
  };
}

function toRecord(found, columns) {
  const row = found.row ?? {};
  const text = joinedText(row, columns);
  const confidence = found.labels.length ? Math.min(...found.labels.map((one) => one.probability)) : 0; // as sure as the least sure label
  return { line: found.line, text, row, labels: found.labels, others: found.others ?? [], problem: found.problem ?? null, confidence, lower: text.toLowerCase() };
}

// Which columns the server read as the text, with one example.
function drawSource(box, columns, rows) {
  const first = rows.find((row) => row.text);
  replace(box, columns.length > 0 && ["The text was read from ", namesLine(columns), first ? [`, such as in line ${count(first.line)}: `, el("q", { dir: "auto" }, shortened(first.text, EXAMPLE))] : "."].flat());
}

function makeFilters(onChange) {
  const text = el("input", { type: "search", id: "filter-text", size: "16" });
  const known = el("datalist", { id: newId("labels") });
  const names = new Set(); // branches and labels that came, for the help while typing
  const label = el("input", { type: "search", id: "filter-label", size: "16", list: known.id });
  const below = el("input", { type: "number", id: "filter-below", min: "0", max: "100", placeholder: "any" });
  const problems = el("input", { type: "checkbox", id: "filter-problems" });
  const order = el("select", { id: "sort" }, Object.entries(ORDERS).map(([value, name]) => el("option", { value }, name)));
  for (const control of [text, label, below, problems, order]) control.addEventListener("input", onChange);
  const apply = (rows) => {
    const [words, start, limit] = [text.value.toLowerCase(), label.value.toLowerCase(), below.value === "" ? Infinity : below.valueAsNumber / 100];
    const found = rows.filter((row) => row.confidence < limit && (!problems.checked || row.problem) && row.lower.includes(words)
      && (!start || row.labels.some((one) => isBelow(one, start))));
    if (order.value === "file") return found;
    const sign = order.value === "sure" ? -1 : 1;
    return found.sort((a, b) => sign * (a.confidence - b.confidence) || a.line - b.line);
  };
  const element = el("div", { class: "options-row filters" }, field("Text has", text), field("Label or path begins with", label), known, field("Below, %", below),
    field("Order", order), el("label", { class: "check" }, problems, "Problems only"));
  const suggest = (rows) => {
    for (const { label: name, path } of rows.flatMap((row) => row.labels)) {
      for (const one of [path[0], name]) {
        if (names.size >= SUGGESTED || names.has(one)) continue;
        names.add(one);
        known.append(el("option", { value: one }));
      }
    }
  };
  const forget = () => {
    names.clear();
    replace(known);
  };
  return { element, apply, suggest, forget, setLabel: (start) => ((label.value = start), onChange()) };
}

// A label is meant by how it is written, or by the titles of its path: "tv" finds all of the branch TV.
function isBelow({ label, path }, start) {
  return label.toLowerCase().startsWith(start) || path.join(" > ").toLowerCase().startsWith(start);
}

function makePager(onTurn) {
  let page = 0;
  let last = 0;
  const turn = (to) => {
    page = Math.max(0, Math.min(last, to));
    onTurn();
  };
  const status = el("span", { id: "page-status", "aria-live": "polite" });
  const step = (text, to, id) => button(text, () => turn(to()), { id, class: "small" });
  const buttons = [step("First", () => 0, "page-first"), step("Previous", () => page - 1, "page-previous"), step("Next", () => page + 1, "page-next"), step("Last", () => last, "page-last")];
  return {
    element: el("div", { class: "actions pager" }, buttons, status),
    reset: () => (page = 0),
    show(found, total) {
      last = Math.max(0, Math.ceil(found / PAGE) - 1);
      page = Math.min(page, last);
      const [start, end] = [page * PAGE, Math.min(found, (page + 1) * PAGE)];
      const outOf = found === total ? countOf(total, "row") : `${count(found)} found among ${countOf(total, "row")}`;
      status.textContent = found ? `Rows ${count(start + 1)} to ${count(end)} of ${outOf}.` : total ? `No row of ${count(total)} is like that.` : "";
      buttons.forEach((one, i) => (one.disabled = i < 2 ? page === 0 : page === last));
      return [start, end];
    },
  };
}

function drawTable(body) {
  // the roles by name, since on a phone the rows are laid out as cards, which are no table to a screen reader
  const head = (text, kind = "text") => el("th", { class: kind, scope: "col", role: "columnheader" }, text);
  body.setAttribute("role", "rowgroup");
  return el("table", { class: "rows", id: "batch-rows", role: "table", "aria-labelledby": "rows-title" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head("Line", ""), head("Text"), head("Label"), head("Confidence"), head("", ""))), body);
}

function drawRow(row) {
  const why = () => {
    state.text = row.text;
    location.hash = "#classify";
  };
  const labels = row.labels.map((one) => el("div", { dir: "auto" }, one.label, row.labels.length > 1 && el("span", { class: "hint" }, ` ${percent(one.probability)}`)));
  const others = row.others.map((one) => el("div", { class: "hint", dir: "auto" }, `${one.label} ${percent(one.probability)}`));
  return el("tr", { role: "row", data: { line: row.line } }, el("td", { role: "cell" }, count(row.line)),
    el("td", { role: "cell", class: "text", dir: "auto" }, shortened(row.text, TEXT)),
    el("td", { role: "cell", class: "text" }, row.problem && el("div", { class: "trouble" }, row.problem), labels, others, !row.problem && !labels.length && "no label"),
    el("td", { role: "cell" }, row.labels.length > 0 && el("div", { class: "mini" }, bar(row.confidence), el("span", { class: "number" }, percent(row.confidence)))),
    el("td", { role: "cell" }, row.text && button("Why?", why, { class: "link", "aria-label": `Why? Line ${row.line}` })));
}

function drawBranches(list, rows, onPick) {
  const sizes = new Map();
  for (const row of rows) {
    const branch = row.labels.length ? row.labels[0].path[0] : row.problem ? "(problems)" : "(no label)";
    sizes.set(branch, (sizes.get(branch) ?? 0) + 1);
  }
  const sorted = [...sizes].sort((a, b) => b[1] - a[1]);
  const most = sorted[0]?.[1] ?? 1;
  const name = (branch) => (branch.startsWith("(") ? branch : button(el("bdi", {}, branch), () => onPick(branch), { class: "link", title: "Show these rows" }));
  replace(list, sorted.slice(0, 30).map(([branch, size]) => el("li", {}, name(branch), bar(size / most), el("span", { class: "number" }, count(size)))),
    sorted.length > 30 && el("li", { class: "hint" }, `and ${count(sorted.length - 30)} more`));
}

function makeQueueing({ rows, run, note }) {
  const below = el("input", { type: "number", id: "queue-below", min: "0", max: "100", value: "50" });
  const unsure = () => rows().filter((row) => row.text && !row.problem && row.confidence < below.valueAsNumber / 100);
  const queue = () => attempt(note, async () => {
    let [queued, known] = [0, 0];
    const waiting = unsure();
    for (const chunk of chunksOf(waiting)) {
      const answer = await post("/v1/reviews", { documents: chunk.map((row) => ({ text: row.text, source: `line ${row.line}` })), model: run().model });
      known += answer.known;
      queued += chunk.length;
      showNote(note, `${count(queued)} of ${countOf(waiting.length, "row")} sent …`);
    }
    showNote(note, `${countOf(queued - known, "row")} queued for review${known ? `; ${count(known)} had been queued before` : ""}.`, "done");
  });
  const go = button("", queue, { id: "queue-go" });
  const update = () => {
    const number = unsure().length;
    go.textContent = `Queue ${countOf(number, "row")} for review`;
    go.disabled = !number;
  };
  below.addEventListener("input", update);
  const element = el("div", { class: "options-row queueing" }, field("Queue those below, %", below), go);
  return { element, update };
}

function* chunksOf(rows) {
  let chunk = [];
  let size = 0;
  for (const row of rows) {
    if (chunk.length && (chunk.length === CHUNK.texts || size + row.text.length > CHUNK.characters)) {
      yield chunk;
      [chunk, size] = [[], 0];
    }
    chunk.push(row);
    size += row.text.length;
  }
  if (chunk.length) yield chunk;
}
