// server/page/store.js - conversations in this browser's IndexedDB: whole ones, and a list of their titles beside them.
// Where the browser has no such store (some private windows) they live as long as the page.
import { titleOf } from "./tree.js";

const memory = new Map();
let database = null;

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export async function open() {
  try {
    const request = indexedDB.open("nib", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("conversations", { keyPath: "id" });
      request.result.createObjectStore("list", { keyPath: "id" });
    };
    database = await done(request);
  } catch {
    database = null;
  }
  return database !== null;
}

const entry = (talk) => ({ id: talk.id, title: titleOf(talk), updated: talk.updated });

// The titles, newest first.
export async function list() {
  const entries = database
    ? await done(database.transaction("list").objectStore("list").getAll())
    : [...memory.values()].map(entry);
  return entries.sort((a, b) => b.updated - a.updated);
}

export async function load(id) {
  return database
    ? done(database.transaction("conversations").objectStore("conversations").get(id))
    : structuredClone(memory.get(id));
}

export async function all() {
  return database ? done(database.transaction("conversations").objectStore("conversations").getAll()) : [...memory.values()];
}

function change(act) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(["conversations", "list"], "readwrite");
    act(transaction.objectStore("conversations"), transaction.objectStore("list"));
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("The browser's store refused."));
  });
}

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("nib") : null;
export const onOtherTab = (listener) => channel?.addEventListener("message", listener);

export async function save(talk) {
  if (database) await change((talks, titles) => (talks.put(talk), titles.put(entry(talk))));
  else memory.set(talk.id, structuredClone(talk));
  channel?.postMessage(talk.id);
}

export async function remove(id) {
  if (database) await change((talks, titles) => (talks.delete(id), titles.delete(id)));
  else memory.delete(id);
  channel?.postMessage(id);
}
