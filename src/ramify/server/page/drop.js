// Files that people drop on a part of the page.

/** Take the first file dropped on this element; it shows while a file hovers over it. */
export function acceptDrop(element, take) {
  const isFile = (event) => [...event.dataTransfer.types].includes("Files");
  element.addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    element.classList.add("dropping");
  });
  element.addEventListener("dragleave", (event) => {
    if (!element.contains(event.relatedTarget)) element.classList.remove("dropping");
  });
  element.addEventListener("drop", (event) => {
    element.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}

const KINDS = {
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  tab: "text/tab-separated-values",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
};
const SHEETS = {
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  ods: "application/vnd.oasis.opendocument.spreadsheet",
  xls: "application/vnd.ms-excel",
};
const ENDS = (kinds) => Object.keys(kinds).map((end) => `.${end}`);

export const ACCEPTED = [...ENDS(KINDS), ...ENDS(SHEETS)].join(",");

/** The content type for a table by the end of its name, or null for what is no table we know. */
export function kindOf(file) {
  return KINDS[endOf(file)] ?? null;
}

/** The content type for a spreadsheet by the end of its name, or null. */
export function sheetKindOf(file) {
  return SHEETS[endOf(file)] ?? null;
}

function endOf(file) {
  return file.name.toLowerCase().split(".").at(-1);
}
