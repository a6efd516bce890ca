// Where an answer stops if every node of it has to be so probable, and how to say that.

import { percent } from "/page/dom.js";

const JOIN = " › ";
export const NO_LABEL = "No label: no node is probable enough for the decision rule.";

/** For each label the deepest node of its path that is at least so likely; null where there is none. */
export function stopsAt(labels, confidence) {
  return labels.map(({ path, probabilities }) => {
    const depth = probabilities.findLastIndex((probability) => probability >= confidence);
    return depth < 0 ? null : { path: path.slice(0, depth + 1), probability: probabilities[depth], isWhole: depth === path.length - 1 };
  });
}

/** The answer in a sentence, for those who listen. */
export function answerInWords(labels) {
  return labels.length ? `Prediction: ${labels.map((label) => named({ path: label.path, probability: label.probabilities.at(-1) })).join("; ")}.` : NO_LABEL;
}

/** Where it stops, in a sentence. */
export function stopsInWords(labels, confidence) {
  if (!labels.length) return NO_LABEL;
  const stops = stopsAt(labels, confidence);
  const kept = mostSpecific(stops.filter(Boolean));
  const at = percent(confidence);
  if (!kept.length) return `At ${at} there would be no label: the most probable branch has ${percent(Math.max(...labels.map((label) => label.probabilities[0])))}.`;
  const whole = kept.filter((stop) => stop.isWhole).map(named);
  const short = kept.filter((stop) => !stop.isWhole).map(named);
  const gone = labels.filter((_, i) => !stops[i]).map((label) => label.path.at(-1));
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
