// Walk through the taxonomy, a branch at a time.
// Ids for tests: #browse-search, #taxonomy (the tree; [data-node]), #node-details, #browse-problem.

import { get, makeLane } from "/page/api.js";
import { bar, count, el, pathLine, percent, replace, countOf } from "/page/dom.js";
import { attempt, showProblem } from "/page/notices.js";
import { makeSearch } from "/page/search.js";
import { modelInfo, state } from "/page/state.js";
import { Tree } from "/page/tree.js";

const PAGE = 200;

/** The view. */
export function makeBrowse() {
  const lane = makeLane();
  const problem = el("div", { id: "browse-problem" });
  const details = el("section", { class: "card details", id: "node-details", "aria-live": "polite", "aria-labelledby": "node-title" });
  const lead = el("p", { class: "hint" });
  const tree = new Tree({
    label: "Taxonomy", id: "taxonomy", opensOnChoose: true, drawRow,
    load: async (item, offset) => toItems(await fetchBranch(item?.name, offset)),
    onChoose: (item) => showDetails(details, item.node),
    onProblem: (error) => showProblem(problem, error),
  });
  const search = makeSearch({ label: "Find a label", id: "browse-search", onPick: (node) => openAt(node.name), keepsText: true });
  let shownModel = null;

  const load = async () => {
    const signal = lane.start();
    const model = state.model;
    return attempt(problem, async () => {
      const { items, total } = toItems(await fetchBranch(undefined, 0, signal));
      if (signal.aborted) return;
      shownModel = model;
      tree.show(items, total);
      const info = modelInfo();
      lead.textContent = `${countOf(info.nodes, "node")} in ${countOf(info.levels, "level")}, ${count(info.leaves)} of them leaves.`;
      showNothing(details);
    }, signal);
  };

  const openAt = (name) => attempt(problem, async () => {
    const { node, above } = await get("/v1/taxonomy", { model: state.model, node: name, limit: 1 });
    let item = null;
    for (const step of [...above, node]) item = await tree.reach(item, itemOf(step));
    tree.choose(item, { focus: true });
    item.li.scrollIntoView({ block: "nearest" });
  });

  const element = el("section", { "aria-labelledby": "browse-title" },
    el("h1", { id: "browse-title" }, "Browse the taxonomy"),
    el("div", { class: "browse" },
      el("div", { class: "card" }, search.element, lead, problem,
        el("div", { class: "columns hint", "aria-hidden": "true" }, el("span", {}, "documents"), el("span", {}, "F1")), tree.element),
      details));

  return {
    element,
    async open(detail) {
      if (shownModel !== state.model) await load();
      if (detail && shownModel) await openAt(detail);
    },
  };
}

function fetchBranch(node, offset, signal) {
  return get("/v1/taxonomy", { model: state.model, node, offset, limit: PAGE }, signal);
}

// Bars compare siblings: the one with most documents fills its bar.
function toItems({ children, total }) {
  const most = Math.max(...children.map((node) => node.documents ?? 0), 1);
  return { items: children.map((node) => itemOf(node, most)), total };
}

function itemOf(node, most = node.documents ?? 1) {
  return { name: node.name, node, most, hasChildren: node.children > 0, items: null };
}

function drawRow({ node, most }) {
  const f1 = node.quality?.f1;
  return [
    el("span", { class: "title" }, el("bdi", {}, node.title), node.children > 0 && el("span", { class: "below" }, ` ${count(node.children)}`, el("span", { class: "unseen" }, " below"))),
    node.documents === null ? el("span") : el("span", { class: "mini" }, bar(node.documents / most, "quiet"), el("span", { class: "number" }, count(node.documents), el("span", { class: "unseen" }, " documents"))),
    f1 === undefined ? el("span") : el("span", { class: "mini" }, bar(f1, "green"), el("span", { class: "number" }, el("span", { class: "unseen" }, " F1 "), f1.toFixed(2))),
  ];
}

function showNothing(details) {
  replace(details, el("h2", { id: "node-title" }, "Details"), el("p", { class: "hint" }, "Choose a node to see what is known about it. Use the arrow keys to move in the tree."));
}

function showDetails(details, node) {
  const facts = [
    ["Label", node.label],
    ["Level", String(node.depth + 1)],
    ["Directly below", countOf(node.children, "node")],
    ["Leaves", node.children ? count(node.leaves) : "none: it is a leaf"],
    ["Training documents", count(node.documents)],
  ];
  replace(details, el("h2", { id: "node-title" }, el("bdi", {}, node.title)), el("p", {}, pathLine(node.path)),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", { dir: "auto" }, value)])), drawQuality(node.quality));
}

function drawQuality(quality) {
  if (!quality) return el("p", { class: "hint" }, "The training report has no figures for this node.");
  const rows = [["F1", quality.f1], ["Precision", quality.precision], ["Recall", quality.recall]];
  return el("div", {}, el("h3", {}, "Quality in the test"),
    el("ul", { class: "bars" }, rows.map(([name, share]) => el("li", {}, el("span", {}, name), bar(share, "green"), el("span", { class: "number" }, share.toFixed(2))))),
    el("p", { class: "hint" }, `In the test ${countOf(quality.support, "document")} belonged here; the model put ${count(quality.predicted)} here, and ${percent(quality.precision)} of those rightly.`));
}
