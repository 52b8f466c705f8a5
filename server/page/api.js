// server/page/api.js - requests to this server: the key, errors as values with words, and streams of events.

export class ApiError extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const KEY = "nib.key";
const read = (storage) => {
  try {
    return storage.getItem(KEY);
  } catch {
    return null;
  }
};
let key = read(sessionStorage) ?? read(localStorage) ?? "";

export function setKey(value, isKept) {
  key = value;
  try {
    sessionStorage.setItem(KEY, value);
    if (isKept) localStorage.setItem(KEY, value);
    else localStorage.removeItem(KEY);
  } catch {
    // It is known until the page is left.
  }
}

let askForKey = async () => false;
export const onKeyNeeded = (ask) => (askForKey = ask);

async function errorOf(response) {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text);
    return new ApiError(response.status, error.message, error.code);
  } catch {
    return new ApiError(response.status, `The server answered ${response.status} ${response.statusText}`.trim(), null);
  }
}

// A response that is fine, or an ApiError. When the server wants a key the user is asked for one.
export async function request(path, { body, signal, quiet = false } = {}) {
  for (;;) {
    const headers = {};
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {
        method: body ? "POST" : "GET",
        headers,
        body: body && JSON.stringify(body),
        signal,
        cache: "no-store",
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The server cannot be reached.", null);
    }
    if (response.ok) return response;
    const error = await errorOf(response);
    if (response.status !== 401 || quiet || !(await askForKey(Boolean(key)))) throw error;
  }
}

export const json = async (path, options) => (await request(path, options)).json();

// Calls onData for the data of each event of a stream, as it comes.
export async function events(response, onData) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "",
    data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line === "" && data.length) {
        onData(data.join("\n"));
        data = [];
      }
    }
  }
}

// Merges what a chunk says into an answer {content, reasoning, calls, finish, usage}.
export function take(answer, chunk) {
  if (chunk.error) throw new ApiError(0, chunk.error.message, chunk.error.code);
  if (chunk.usage) answer.usage = chunk.usage;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const delta = choice.delta ?? {};
  answer.content += delta.content ?? "";
  answer.reasoning += delta.reasoning_content ?? delta.reasoning ?? "";
  for (const part of delta.tool_calls ?? []) {
    const call = (answer.calls[part.index ?? 0] ??= { id: "", name: "", arguments: "" });
    call.id ||= part.id ?? "";
    call.name += part.function?.name ?? "";
    call.arguments += part.function?.arguments ?? "";
  }
  if (choice.finish_reason) answer.finish = choice.finish_reason;
}

// Streams an answer: onChunk(answer) after each part of it. Resolves when it is complete.
export async function chat(body, signal, onChunk) {
  const answer = { content: "", reasoning: "", calls: [], finish: null, usage: null };
  const response = await request("/v1/chat/completions", {
    body: { ...body, stream: true, stream_options: { include_usage: true } },
    signal,
  });
  let isDone = false;
  await events(response, (data) => {
    if (data === "[DONE]") isDone = true;
    else {
      take(answer, JSON.parse(data));
      onChunk(answer);
    }
  });
  if (!isDone && !answer.finish) throw new ApiError(0, "The connection was lost before the answer was complete.", null);
  return answer;
}
