// What all views share: who asks, which models there are, which one is chosen, and the text at hand.

import { get } from "/page/api.js";

const NAME = "ramify-name";
const MODEL = "ramify-model"; // of this tab, so that a reload keeps it
const ROLES = ["read", "review", "admin"];
const listeners = new Set();

export const state = { session: null, models: [], model: null, text: "" };

/** Fetch the session and the models. */
export async function loadState() {
  state.session = await get("/v1/session");
  state.models = (await get("/v1/models")).models;
  const kept = sessionStorage.getItem(MODEL);
  const standard = state.models.find((model) => model.name === kept) ?? state.models.find((model) => model.is_default) ?? state.models[0];
  state.model ??= standard?.name ?? null;
}

/** Choose another model; every view that is open hears of it. */
export function chooseModel(name) {
  state.model = name;
  sessionStorage.setItem(MODEL, name);
  for (const listener of listeners) listener(name);
}

/** Call `listener` whenever another model is chosen. */
export function onModel(listener) {
  listeners.add(listener);
}

/** What is known about the chosen model, or about the one named. */
export function modelInfo(name = state.model) {
  return state.models.find((model) => model.name === name);
}

/** Whether the key's role is at least this one. */
export function mayAct(role) {
  return ROLES.indexOf(state.session.role) >= ROLES.indexOf(role);
}

/** Whether this person can review: the server keeps reviews, and the role is enough. */
export function mayReview() {
  return state.session.reviews && mayAct("review");
}

/** The name that goes with decisions where the server has no keys; undefined where the key says who it is. */
export function reviewer() {
  return state.session.needs_key ? undefined : localStorage.getItem(NAME) || undefined;
}

/** Remember that name on this computer. */
export function keepReviewer(name) {
  localStorage.setItem(NAME, name.trim());
}
