// The text with the words that speak for and against marked in it. For tests: mark.for, mark.against, [data-words].

import { count, el, signed } from "/page/dom.js";

const SHOWN = 20_000; // characters; a text of a megabyte would take seconds to draw, and nobody reads it here

/** The text as an element, each known word marked by what it adds; `weights` maps a word's number to its weight. */
export function markedText(text, spans, weights, terms) {
  const letters = Array.from(text); // the server counts code points, JavaScript strings do not
  const largest = greatest(weights.values());
  const shown = letters.slice(0, SHOWN);
  const pieces = cut(spans, weights, shown.length).map((piece) => drawPiece(piece, shown, largest, terms));
  const box = el("div", { class: "marked", dir: "auto", tabindex: "0", role: "group", "aria-label": "The text, with its words marked" }, pieces);
  if (letters.length <= SHOWN) return box;
  const note = `The first ${count(SHOWN)} of ${count(letters.length)} characters are shown; all of them were read.`;
  return el("div", {}, box, el("p", { class: "hint" }, note));
}

// Never zero, as it divides. A long text has more words than a function takes arguments, hence no Math.max(...).
function greatest(weights) {
  let most = 1e-12;
  for (const weight of weights) most = Math.max(most, Math.abs(weight));
  return most;
}

// Terms of several words overlap: between two borders the same terms hold, and their weights add up.
function cut(spans, weights, end) {
  const known = spans.filter((span) => weights.has(span.word) && span.start < end);
  const borders = [...new Set([0, end, ...known.flatMap((span) => [span.start, Math.min(span.end, end)])])].sort((a, b) => a - b);
  const starts = [...known].sort((a, b) => a.start - b.start);
  let next = 0;
  let open = [];
  return borders.slice(0, -1).map((start, i) => {
    while (next < starts.length && starts[next].start <= start) open.push(starts[next++]);
    open = open.filter((span) => span.end > start);
    const words = [...new Set(open.map((span) => span.word))];
    return { start, end: borders[i + 1], words, weight: words.reduce((sum, word) => sum + weights.get(word), 0) };
  });
}

function drawPiece(piece, letters, largest, terms) {
  const text = letters.slice(piece.start, piece.end).join("");
  const strength = Math.min(1, Math.abs(piece.weight) / largest);
  if (!piece.words.length || strength < 0.02) return text;
  return el("mark", {
    class: piece.weight > 0 ? "for" : "against",
    title: piece.words.map((word) => terms[word]).join(", ") + `: ${signed(piece.weight)}`,
    data: { words: ` ${piece.words.join(" ")} ` },
    vars: { strength: strength.toFixed(3) },
  }, text);
}

/** What the marks mean: for `winner`, and against it (for `rival`, where there is one). */
export function legend(winner, rival) {
  return el("p", { class: "legend" },
    el("span", {}, el("mark", { class: "for", vars: { strength: 0.7 } }, "for"), " ", el("bdi", {}, winner)),
    el("span", {}, el("mark", { class: "against", vars: { strength: 0.7 } }, "against"), rival ? [" it, for ", el("bdi", {}, rival)] : " it"),
    el("span", { class: "hint" }, "The stronger the colour, the more the word adds."));
}

/** Words as bars to both sides of zero; `prior` is what the text has no say in. */
export function wordBars(words, prior, shown = 10) {
  const largest = greatest([prior, ...words.map((word) => word.weight)]);
  const rest = { text: "(without any word)", weight: prior, isPrior: true };
  const list = el("ul", { class: "words" }, words.slice(0, shown).map((word) => wordRow(word, largest)), wordRow(rest, largest));
  const hidden = words.slice(shown);
  if (!hidden.length) return list;
  const more = el("button", { type: "button", class: "link", data: { action: "all-words" } }, `Show ${count(hidden.length)} more`);
  more.addEventListener("click", () => {
    list.lastElementChild.before(...hidden.slice(0, 500).map((word) => wordRow(word, largest)));
    more.remove();
  });
  return el("div", {}, list, more);
}

function wordRow(word, largest) {
  const kind = word.isPrior ? "prior" : word.weight < 0 ? "against" : "for";
  return el("li", { class: kind, data: word.isPrior ? {} : { word: word.word } },
    el("bdi", { class: "word" }, word.text),
    el("span", { class: "arms", "aria-hidden": "true", vars: { share: Math.abs(word.weight) / largest, sign: word.weight < 0 ? -1 : 1 } }),
    el("span", { class: "number" }, signed(word.weight)));
}

/** Light up a word's places in the text while the pointer is on its bar. */
export function lightUp(bars, marked) {
  const light = (event) => {
    const word = event.target.closest("[data-word]")?.dataset.word;
    for (const mark of marked.querySelectorAll("mark")) mark.classList.toggle("lit", word !== undefined && mark.dataset.words.includes(` ${word} `));
  };
  bars.addEventListener("pointerover", light);
  bars.addEventListener("pointerleave", light);
}
