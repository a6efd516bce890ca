// A path as a ladder: one rung a node, with its probability. For tests: .ladder li, .badge.

import { bar, el, percent } from "/page/dom.js";

/** Draw a path; `badgeOf(depth)` gives a word to mark a rung with, or nothing. */
export function ladder(path, probabilities = [], badgeOf = () => null) {
  const rung = (title, depth) => {
    const badge = badgeOf(depth);
    const share = probabilities[depth];
    return el("li", { class: badge ? "alone" : "", vars: { depth } },
      el("span", { class: "title" }, el("bdi", {}, title), badge && el("span", { class: "badge warn" }, badge)),
      share !== undefined && bar(share), share !== undefined && el("span", { class: "number" }, percent(share)));
  };
  return el("ol", { class: "ladder" }, path.map(rung));
}

/** How many nodes two paths share from the top. */
export function sharedDepth(mine, theirs) {
  const differs = mine.findIndex((title, i) => title !== theirs[i]);
  return differs < 0 ? mine.length : differs;
}
