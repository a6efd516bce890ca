// The paths of labels. Evaluations give labels only; the taxonomy knows where they hang.

import { get } from "/page/api.js";

/** Finds the paths of one model's labels, each once. */
export function makePaths(model) {
  const paths = new Map();
  let top = null;

  // Labels that are paths of titles need no request each.
  const find = async (label) => {
    top ??= get("/v1/taxonomy", { model }).then(({ children }) => new Set(children.map((node) => node.title)), () => new Set());
    const titles = label.split(" > ");
    if ((await top).has(titles[0])) return titles;
    const found = await get("/v1/taxonomy", { model, node: label, limit: 1 }).catch(() => null);
    return found?.node?.path ?? [label];
  };

  return {
    /** The titles from the top to a label, or the label by itself where it is not known. */
    pathOf(label) {
      if (!paths.has(label)) paths.set(label, find(label));
      return paths.get(label);
    },
  };
}
