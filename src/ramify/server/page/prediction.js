// The answer in a line and as a branch of the taxonomy. Ids for tests: see classify.js.

import { bar, el, pathLine, percent, replace } from "/page/dom.js";
import { NO_LABEL, stopsAt } from "/page/stops.js";
import { Tree } from "/page/tree.js";

const CHANGED = 0.01; // so much must a rule change a value before it is worth a word

/** Headline and tree. `show(result, explanations)` draws, `mark(step)` shows which step is being explained. */
export function makeAnswer({ onChoose }) {
  const headline = el("div", { id: "headline" });
  const tree = new Tree({ label: "Where the text belongs", id: "answer", drawRow, onChoose });
  let labels = [];
  let items = new Map();
  let hadFocus = false; // drawing the tree anew must not throw out who is walking in it

  return {
    headline,
    tree: tree.element,
    show(result, explanations) {
      labels = result.labels;
      hadFocus = tree.element.contains(document.activeElement);
      const found = branchesOf(result, explanations);
      items = found.items;
      replace(headline, drawHeadline(labels));
      tree.show(found.roots);
    },
    /** Show where the answer stops if every node has to be so probable. */
    showStops(confidence) {
      tree.element.style.setProperty("--at", confidence);
      markStops(items, labels, stopsAt(labels, confidence));
    },
    /** Show the labels within the accepted risk; null for none. */
    showGuaranteed(kept) {
      const safe = new Set((kept ?? []).map((label) => keyOf(label.path)));
      for (const [key, item] of items) {
        item.isSafe = safe.has(key);
        item.li?.classList.toggle("guaranteed", item.isSafe);
        item.li?.querySelector(":scope > .row .guarantee-badge")?.classList.toggle("shown", item.isSafe);
      }
    },
    mark(step) {
      const item = step && [...items.values()].find((one) => one.name === step.name);
      if (item) tree.choose(item, { quietly: true, focus: hadFocus });
      hadFocus = false;
    },
  };
}

// The answer in a line: the path of each label, and how probable it is.
function drawHeadline(labels) {
  if (!labels.length) return el("p", { class: "headline-label" }, NO_LABEL);
  return labels.map(({ path, probabilities }) => el("p", { class: "headline-label" },
    path.length > 1 && [pathLine(path.slice(0, -1), { class: "above" }), el("span", { class: "unseen" }, " › ")],
    el("b", {}, el("bdi", {}, path.at(-1))), " ", el("span", { class: "sure" }, el("span", { class: "number" }, percent(probabilities.at(-1))), el("span", { class: "unseen" }, " probable"))));
}

function markStops(items, labels, stops) {
  const kept = new Set(stops.flatMap((stop) => (stop ? stop.path.map((_, i) => keyOf(stop.path.slice(0, i + 1))) : [])));
  const ends = new Set(stops.filter((stop) => stop && !stop.isWhole).map((stop) => keyOf(stop.path)));
  for (const [key, item] of items) {
    item.li?.classList.toggle("beyond", item.isTaken && !kept.has(key));
    item.li?.classList.toggle("stop", ends.has(key));
  }
}

function keyOf(path) {
  return path.join("\0");
}

// Nodes come from three places: the labels, the runners-up and the explanations. A path of titles is what they share.
function branchesOf(result, explanations) {
  const items = new Map();
  const roots = [];
  const add = (path, values) => {
    const key = keyOf(path);
    if (!items.has(key)) {
      const item = { name: path.join(" > "), title: path.at(-1), path, items: [], isTaken: false, probability: 0 };
      items.set(key, item);
      (path.length > 1 ? add(path.slice(0, -1), {}).items : roots).push(item);
    }
    return Object.assign(items.get(key), values);
  };
  for (const explanation of explanations) addExplained(explanation, add);
  for (const label of [...result.others, ...result.labels]) addLabel(label, result.labels.includes(label), add);
  finish(roots);
  return { roots, items };
}

function addExplained({ nodes, steps, explained }, add) {
  const paths = new Map();
  for (const node of nodes) {
    const path = [...(paths.get(node.parent) ?? []), node.title];
    paths.set(node.node, path);
    add(path, { name: node.name, probability: node.probability, contradicts: node.contradicts, value: node.value, refined: node.refined, reason: node.reason });
  }
  steps.forEach((step, i) => add(explained.path.slice(0, i + 1), { name: step.name, probability: step.probability, isAsked: true }));
}

function addLabel({ label, path, probabilities }, isTaken, add) {
  path.forEach((_, i) => {
    const item = add(path.slice(0, i + 1), { probability: probabilities[i] });
    item.isTaken ||= isTaken;
    if (i === path.length - 1) item.ownLabel = label;
  });
}

function finish(items) {
  items.sort((a, b) => b.isTaken - a.isTaken || b.probability - a.probability);
  for (const item of items) {
    finish(item.items);
    item.label = item.ownLabel ?? item.name;
    item.hasChildren = item.items.length > 0;
    item.isOpen = item.hasChildren && Boolean(item.isTaken || item.isAsked);
    item.kind = item.isTaken ? "taken" : "runner-up";
  }
}

function drawRow(item) {
  return [
    el("span", { class: "title" }, el("bdi", {}, item.title), badges(item), el("span", { class: `badge guarantee-badge ${item.isSafe ? "shown" : ""}` }, "certain enough")),
    el("span", { class: "badge stop-badge" }, "stops here"),
    bar(item.probability, "at"),
    el("span", { class: "number" }, percent(item.probability)),
  ];
}

function badges(item) {
  const found = [];
  if (item.contradicts) found.push(["contradicts", "Its score is higher than that of its parent, which is impossible; the decision rule corrects it."]);
  if (isChanged(item)) found.push([item.refined > item.value ? "raised" : "lowered", `The decision rule changed ${item.value.toFixed(2)} to ${item.refined.toFixed(2)}.`]);
  return found.map(([text, title]) => el("span", { class: "badge warn", title }, text));
}

function isChanged(item) {
  return Number.isFinite(item.refined) && Number.isFinite(item.value) && Math.abs(item.refined - item.value) > CHANGED;
}
