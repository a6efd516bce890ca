// Rows of a batch as a CSV file.

const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** The parts of a CSV file: the columns that came, then labels, probabilities and problems. */
export function csvOf(records) {
  const columns = [...new Set(records.slice(0, 1000).flatMap((record) => Object.keys(record.row)))];
  const width = records.reduce((most, record) => Math.max(most, record.labels.length + record.others.length), 1);
  const ranks = Array.from({ length: width }, (_, i) => (i === 0 ? "" : `_${i + 1}`));
  const head = ["line", ...columns, ...ranks.flatMap((rank) => [`label${rank}`, `probability${rank}`]), "problem"];
  return [`\uFEFF${lineOf(head)}`, ...records.map((record) => lineOf(cellsOf(record, columns, width)))];
}

function cellsOf(record, columns, width) {
  const found = [...record.labels, ...record.others];
  const answers = Array.from({ length: width }, (_, i) => [found[i]?.label ?? "", found[i] ? String(found[i].probability) : ""]);
  const given = columns.map((column) => textOf(record.row[column]));
  return [String(record.line), ...given, ...answers.flat(), record.problem ?? ""];
}

function textOf(value) {
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

function lineOf(cells) {
  return `${cells.map(cellOf).join(",")}\r\n`;
}

// Spreadsheets take what begins with one of these signs for a formula, unless it is a number.
function cellOf(text) {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
