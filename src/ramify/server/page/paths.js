// The paths of labels. Batches and evaluations give labels only; the taxonomy knows where they hang.

import { get } from "/page/api.js";

const AT_ONCE = 4;
const MOST = 2000; // labels to look up; beyond that they are counted together

/** Paths of one model's labels; `onNews` is called when another branch has become known. */
export function makePaths(model, onNews = () => {}) {
  const branches = new Map();
  const paths = new Map();
  const waiting = [];
  let busy = 0;
  let top = null;

  // Labels that are paths of titles need no request each.
  const find = async (label) => {
    top ??= get("/v1/taxonomy", { model }).then(({ children }) => new Set(children.map((node) => node.title)), () => new Set());
    const titles = label.split(" > ");
    if ((await top).has(titles[0])) return titles;
    const found = await get("/v1/taxonomy", { model, node: label, limit: 1 }).catch(() => null);
    return found?.node?.path ?? null;
  };
  const pathOf = (label) => {
    if (!paths.has(label)) paths.set(label, find(label));
    return paths.get(label);
  };
  const next = async () => {
    if (!waiting.length || busy >= AT_ONCE) return;
    busy += 1;
    const label = waiting.shift();
    branches.set(label, (await pathOf(label))?.[0] ?? "(others)");
    busy -= 1;
    onNews();
    next();
  };

  return {
    /** The titles from the top to a label, or the label by itself where it is not known. */
    pathOf: async (label) => (await pathOf(label)) ?? [label],
    /** The title of the top of a label's branch; "(…)" until it is known. */
    branchOf(label) {
      if (branches.has(label)) return branches.get(label);
      if (branches.size >= MOST) return "(others)";
      branches.set(label, "(…)");
      waiting.push(label);
      next();
      return "(…)";
    },
  };
}
