// The page itself: header, routes, models, look. Ids for tests: #model, #theme, #views a[data-view], #footer.

import { lostConnection } from "/page/api.js";
import { makeBatch } from "/page/batch.js";
import { makeBrowse } from "/page/browse.js";
import { makeClassify } from "/page/classify.js";
import { makeCompare } from "/page/compare.js";
import { el, replace } from "/page/dom.js";
import { makeEvaluate } from "/page/evaluate.js";
import { showProblem } from "/page/notices.js";
import { makeReview } from "/page/review.js";
import { chooseModel, loadState, mayReview, modelInfo, onModel, state } from "/page/state.js";

const VIEWS = [
  { name: "classify", title: "Classify", make: makeClassify },
  { name: "browse", title: "Browse", make: makeBrowse },
  { name: "batch", title: "Batch", make: makeBatch },
  { name: "compare", title: "Compare", make: makeCompare, isShown: () => state.models.length > 1 },
  { name: "review", title: "Review", make: makeReview, isShown: mayReview },
  { name: "evaluate", title: "Evaluate", make: makeEvaluate },
];
const main = document.getElementById("main");
const made = new Map();

async function start() {
  setUpTheme();
  try {
    await loadState();
  } catch (error) {
    showProblem(main, error.status === undefined ? lostConnection() : error, start);
    addRetryAfterKey(error);
    return;
  }
  replace(main);
  setUpModels();
  drawViews();
  drawFooter();
  window.addEventListener("hashchange", route);
  route();
}

// Who closed the dialog without a key needs a way back to it.
function addRetryAfterKey(error) {
  if (error.status !== 401) return;
  main.append(el("button", { type: "button", class: "main", on: { click: start } }, "Give a key"));
}

function setUpTheme() {
  const chooser = document.getElementById("theme");
  const show = (theme) => document.documentElement.setAttribute("data-theme", theme);
  chooser.value = localStorage.getItem("ramify-theme") ?? "auto";
  show(chooser.value);
  chooser.onchange = () => {
    localStorage.setItem("ramify-theme", chooser.value);
    show(chooser.value);
  };
}

function setUpModels() {
  const chooser = document.getElementById("model");
  replace(chooser, state.models.map((model) => el("option", { value: model.name }, model.name)));
  chooser.value = state.model;
  chooser.disabled = state.models.length < 2;
  chooser.addEventListener("change", () => chooseModel(chooser.value));
  onModel(drawFooter);
  onModel(route);
}

function shownViews() {
  return VIEWS.filter((view) => view.isShown?.() ?? true);
}

function drawViews() {
  const link = (view) => el("a", { href: `#${view.name}`, data: { view: view.name } }, view.title);
  replace(document.getElementById("views"), shownViews().map((view) => el("li", {}, link(view))));
}

function drawFooter() {
  const model = modelInfo();
  const who = state.session.needs_key ? ` You are ${state.session.name} (${state.session.role}).` : "";
  const what = model
    ? `${model.name}: system ${model.system}, ${model.nodes.toLocaleString("en")} nodes in ${model.levels} levels` +
      (model.documents ? `, trained on ${model.documents.toLocaleString("en")} documents.` : ".")
    : "No model is served.";
  document.getElementById("footer").textContent = `Ramify ${state.session.version}. ${what}${who}`;
}

// A route is #view or #view/detail, the detail percent-encoded: #browse/NODE opens the taxonomy there.
function route() {
  if (location.hash === "#main") return;
  const [name, ...rest] = location.hash.slice(1).split("/");
  const view = shownViews().find((one) => one.name === name) ?? shownViews()[0];
  if (!made.has(view.name)) {
    made.set(view.name, view.make());
    main.append(made.get(view.name).element);
  }
  for (const [other, { element }] of made) element.hidden = other !== view.name;
  for (const link of document.querySelectorAll("#views a")) markCurrent(link, view.name);
  document.title = `${view.title} – Ramify`;
  made.get(view.name).open(rest.length ? decoded(rest.join("/")) : null);
}

function decoded(detail) {
  try {
    return decodeURIComponent(detail);
  } catch {
    return null; // an address that somebody typed
  }
}

function markCurrent(link, name) {
  if (link.dataset.view === name) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

start();
