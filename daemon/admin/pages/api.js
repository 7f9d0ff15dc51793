// The API of the daemon, with the token of this tab.

const TOKEN = "tollgate-token";
// Without an event for this long, the connection is lost.
const SILENCE = 5000;
const RETRY = 1000;
const MAX_RETRY = 5000;
// The pause before the stream is opened again that the daemon has ended.
const PAUSE = 200;

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// The token is kept for this tab and this port only: a cookie would be sent to every port of the host.
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (value) => sessionStorage.setItem(TOKEN, value),
  clear: () => sessionStorage.removeItem(TOKEN),
};

function headers() {
  const secret = token.get();
  return secret === null ? {} : { authorization: `Bearer ${secret}` };
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "omit", ...options });
  } catch {
    throw new ApiError(0, "The daemon does not answer.");
  }
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new ApiError(response.status, problem.detail ?? `The daemon answered with status ${response.status}.`);
  }
  return response;
}

export async function get(path) {
  return (await request(path, { headers: headers() })).json();
}

export async function post(path, body) {
  const options = {
    method: "POST",
    headers: { ...headers(), "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  return (await request(path, options)).json();
}

// The events of one connection, until it is lost. `EventSource` could not send the token.
async function* read(signal, keepAlive) {
  const response = await request("api/events", { headers: headers(), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) {
      return;
    }
    keepAlive();
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data !== undefined) {
        yield JSON.parse(data.slice("data: ".length));
      }
    }
  }
}

// Follows the daemon for as long as the page is open. Calls `onEvent` with each overview, and whether
// it is the first of its connection; `onLost` with the error; and ends when a token is needed.
export async function follow(onEvent, onLost) {
  let retry = RETRY;
  for (;;) {
    const abort = new AbortController();
    let timer = setTimeout(() => abort.abort(), SILENCE);
    const keepAlive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE);
    };
    let error = null;
    let isFirst = true;
    try {
      for await (const overview of read(abort.signal, keepAlive)) {
        retry = RETRY;
        onEvent(overview, isFirst);
        isFirst = false;
      }
    } catch (failure) {
      error = failure instanceof ApiError ? failure : new ApiError(0, "The connection was lost.");
    }
    clearTimeout(timer);
    // The daemon ends a stream after a reload, so that its token is checked again.
    if (error === null && !isFirst) {
      await sleep(PAUSE);
      continue;
    }
    error ??= new ApiError(0, "The daemon closed the connection.");
    onLost(error);
    if (error.status === 401 || error.status === 403) {
      return;
    }
    await sleep(retry);
    retry = Math.min(retry * 2, MAX_RETRY);
  }
}
