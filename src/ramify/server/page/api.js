// Talking to the server: one way to ask, errors as sentences, the key, and no old answer over a new one.

import { askForKey } from "/page/key.js";

const KEY = "ramify-key";

/** What went wrong, as a sentence to show. `status` is 0 when the server was not reached. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message.charAt(0).toUpperCase() + message.slice(1)); // the server's sentences also stand behind "Error:"
    this.status = status;
    this.code = code;
  }

  /** Whether asking again may help. */
  get mayPass() {
    return this.status === 0 || this.status === 503 || this.status === 504;
  }
}

/** GET some JSON. */
export async function get(path, params = {}, signal = undefined) {
  return (await ask(path, { method: "GET", params, signal })).json();
}

/** POST a JSON body, get JSON. */
export async function post(path, values, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(values), signal })).json();
}

/** Ask the server; asks the person for a key where one is needed, and again where it is wrong. */
export async function ask(path, { method, params = {}, headers = {}, body, signal }) {
  for (let known = sessionStorage.getItem(KEY), isFirst = true; ; isFirst = false) {
    const response = await fetchOnce(address(path, params), { method, headers: withKey(headers, known), body, signal });
    if (response.ok) return response;
    const error = await readError(response);
    if (response.status !== 401) throw error;
    known = await keyAfter(known, isFirst, error);
  }
}

// Several requests may fail at once for want of a key: who comes second takes the key that the first was given.
async function keyAfter(tried, isFirst, error) {
  const stored = sessionStorage.getItem(KEY);
  if (isFirst && stored !== tried) return stored;
  const key = await askForKey(tried ? error.message : "");
  if (key === null) throw error;
  sessionStorage.setItem(KEY, key);
  return key;
}

async function fetchOnce(url, options) {
  try {
    return await fetch(url, { ...options, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw lostConnection();
  }
}

/** The error for a server that does not answer. */
export function lostConnection() {
  return new ApiError(0, "lost-connection", "The server does not answer. Check that it is running and that you are connected.");
}

function withKey(headers, key) {
  return key ? { ...headers, Authorization: `Bearer ${key}` } : headers;
}

function address(path, params) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams();
  for (const [name, value] of given) for (const one of [value].flat()) query.append(name, one);
  return given.length ? `${path}?${query}` : path;
}

async function readError(response) {
  const { error } = await response.json().catch(() => ({}));
  const message = error?.message ?? `The server answered with status ${response.status} and gave no reason.`;
  return new ApiError(response.status, error?.code ?? "unknown", message);
}

/** Save what the server sends as a file; a plain link could not carry the key. */
export async function download(path, params, name) {
  const response = await ask(path, { method: "GET", params });
  saveFile(await response.blob(), name);
}

/** Hand a file to the person. */
export function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A lane holds one request at a time: starting a new one ends the old one, whose answer is then not shown. */
export function makeLane() {
  let current = null;
  const stop = () => current?.abort();
  return {
    stop,
    start() {
      stop();
      current = new AbortController();
      return current.signal;
    },
  };
}
