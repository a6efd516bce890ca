// The encodings that the page offers, by the names that people know.

import { el, replace } from "/page/dom.js";

const NAMES = {
  "utf-8": "Unicode (UTF-8)",
  "utf-16": "Unicode (UTF-16)",
  "utf-16-le": "Unicode (UTF-16, little-endian)",
  "utf-16-be": "Unicode (UTF-16, big-endian)",
  "utf-32": "Unicode (UTF-32)",
  cp1252: "Western European (Windows-1252)",
  "latin-1": "Western European (Latin-1)",
  "iso8859-15": "Western European (Latin-9)",
  "mac-roman": "Western European (Mac)",
  cp1250: "Central European (Windows-1250)",
  "iso8859-2": "Central European (Latin-2)",
  cp1251: "Cyrillic (Windows-1251)",
  "koi8-r": "Cyrillic (KOI8-R)",
  cp1253: "Greek (Windows-1253)",
  cp1254: "Turkish (Windows-1254)",
  cp1255: "Hebrew (Windows-1255)",
  cp1256: "Arabic (Windows-1256)",
  cp1257: "Baltic (Windows-1257)",
  cp1258: "Vietnamese (Windows-1258)",
  cp874: "Thai (Windows-874)",
  shift_jis: "Japanese (Shift JIS)",
  "euc-jp": "Japanese (EUC)",
  gb18030: "Chinese (GB18030)",
  big5: "Chinese (Big5)",
  cp949: "Korean (Windows-949)",
};

/** A select; `value()` is what the person chose, or undefined to find it. */
export function makeEncodingChooser({ id, onChange }) {
  const found = el("option", { value: "" }, "Detect");
  const select = el("select", { id }, found, Object.entries(NAMES).map(([value, name]) => el("option", { value }, name)));
  select.addEventListener("change", onChange);
  return {
    select,
    value: () => select.value || undefined,
    /** Tell what was detected; null for nothing. */
    tell: (encoding) => replace(found, encoding ? `Detected: ${NAMES[encoding] ?? encoding}` : "Detect"),
    forget() {
      select.value = "";
      replace(found, "Detect");
    },
  };
}
