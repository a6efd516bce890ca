// Sentences about what went wrong or well, shown where they matter.

import { button, el, replace } from "/page/dom.js";

/** Show an error in a box, with a way to try again where that may help. */
export function showProblem(box, error, retry = null) {
  if (error.code === undefined) console.error(error);
  const again = retry && error.mayPass && button("Try again", retry, { class: "small", data: { action: "retry" } });
  replace(box, el("p", { class: "problem", role: "alert" }, el("span", {}, sentenceOf(error)), again));
}

// Errors without a code are bugs of the page; people still get a sentence.
function sentenceOf(error) {
  return error.code === undefined ? `The page has a bug: ${error.message}` : error.message;
}

/** Show a plain sentence in a box. */
export function showNote(box, sentence, kind = "note") {
  replace(box, el("p", { class: kind }, sentence));
}

/** Run a request in a box: shows what goes wrong, and nothing when a newer request took over. Gives whether all went well. */
export async function attempt(box, work, signal = undefined) {
  replace(box);
  try {
    await work();
    return true;
  } catch (error) {
    if (signal?.aborted || error.name === "AbortError") return false;
    showProblem(box, error, () => attempt(box, work, signal));
    return false;
  }
}
