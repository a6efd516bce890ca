// The answer as a branch of the taxonomy, and how far down it goes at a chosen confidence. Ids for tests: see classify.js.

import { bar, el, percent } from "/page/dom.js";
import { Tree } from "/page/tree.js";

const JOIN = " › ";
const CHANGED = 0.01; // so much must a rule change a value before it is worth a word

/** Tree and slider. `show(result, explanations)` draws, `mark(step)` shows which step is being explained. */
export function makeAnswer({ onChoose }) {
  const tree = new Tree({ label: "Where the text belongs", id: "answer", drawRow, onChoose });
  const slider = el("input", { type: "range", id: "confidence", min: "0", max: "100", step: "1", value: "0", "aria-describedby": "stop-sentence" });
  const value = el("output", { id: "confidence-value", for: "confidence" });
  const sentence = el("p", { id: "stop-sentence" });
  let labels = [];
  let items = new Map();
  let safe = new Set(); // nodes within the accepted risk
  let hadFocus = false; // drawing the tree anew must not throw out who is walking in it

  const weigh = () => {
    const confidence = slider.valueAsNumber / 100;
    value.textContent = `${slider.value}%`;
    slider.setAttribute("aria-valuetext", `${slider.value}%`);
    tree.element.style.setProperty("--at", confidence);
    const stops = stopsAt(labels, confidence);
    sentence.textContent = inWords(labels, stops, confidence);
    markStops(items, labels, stops);
  };
  slider.addEventListener("input", weigh);
  const markSafe = () => {
    for (const [key, item] of items) {
      item.isSafe = safe.has(key);
      item.li?.classList.toggle("guaranteed", item.isSafe);
      item.li?.querySelector(":scope > .row .guarantee-badge")?.classList.toggle("shown", item.isSafe);
    }
  };

  return {
    element: el("div", {}, tree.element,
      el("div", { class: "confidence" }, el("label", { for: "confidence" }, "Confidence needed"), slider, value), sentence),
    sentence: () => sentence.textContent,
    show(result, explanations) {
      labels = result.labels;
      hadFocus = tree.element.contains(document.activeElement);
      const found = branchesOf(result, explanations);
      items = found.items;
      tree.show(found.roots);
      weigh();
      markSafe();
    },
    showGuaranteed(kept) {
      safe = new Set((kept ?? []).map((label) => keyOf(label.path)));
      markSafe();
    },
    mark(step) {
      const item = step && [...items.values()].find((one) => one.name === step.name);
      if (item) tree.choose(item, { quietly: true, focus: hadFocus });
      hadFocus = false;
    },
  };
}

/** For each label the deepest node of its path that is at least so likely; null where there is none. */
export function stopsAt(labels, confidence) {
  return labels.map(({ path, probabilities }) => {
    const depth = probabilities.findLastIndex((probability) => probability >= confidence);
    return depth < 0 ? null : { path: path.slice(0, depth + 1), probability: probabilities[depth], isWhole: depth === path.length - 1 };
  });
}

function inWords(labels, stops, confidence) {
  if (!labels.length) return "No label: no node is probable enough for the decision rule.";
  const kept = mostSpecific(stops.filter(Boolean));
  const at = percent(confidence);
  if (!kept.length) return `At ${at} there would be no label: the most probable branch has ${percent(Math.max(...labels.map((label) => label.probabilities[0])))}.`;
  const whole = kept.filter((stop) => stop.isWhole).map(named);
  const short = kept.filter((stop) => !stop.isWhole).map(named);
  const gone = labels.filter((_, i) => !stops[i]).map((label) => label.path.at(-1));
  if (confidence === 0) return `Prediction: ${whole.join("; ")}.`;
  const parts = [
    whole.length && `goes all the way to ${whole.join(" and to ")}`,
    short.length && `would stop at ${short.join(" and at ")}`,
    gone.length && `would leave out ${gone.join(" and ")}`,
  ].filter(Boolean);
  return `At ${at} the prediction ${parts.join(", and ")}.`;
}

function named(stop) {
  return `${stop.path.join(JOIN)} (${percent(stop.probability)})`;
}

// Two labels that stop at the same node are one answer, and one that stops above another adds nothing to it.
function mostSpecific(stops) {
  const paths = stops.map((stop) => `${stop.path.join("\0")}\0`);
  return stops.filter((_, i) => !paths.some((path, j) => path.startsWith(paths[i]) && (path !== paths[i] || j < i)));
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
    el("span", { class: "title" }, el("bdi", {}, item.title), badges(item), el("span", { class: `badge guarantee-badge ${item.isSafe ? "shown" : ""}` }, "within the risk")),
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
