// The server's JSON. A failure is thrown as { status, message, hint }, with status 0 when it cannot be reached.

let token = null;

export async function openSession() {
  return remember(await ask("api/session"));
}

export async function logIn(user, password) {
  return remember(await change("api/login", { user, password }));
}

export async function logOut() {
  return remember(await change("api/logout", {}));
}

export function showPage(name, query) {
  return ask(`api/pages/${name}?${new URLSearchParams(query)}`);
}

export function act(name, body, database = null) {
  return change(`api/actions/${name}${database === null ? "" : `?${new URLSearchParams({ database })}`}`, body);
}

function remember(session) {
  token = session.token ?? null;
  return session;
}

function change(path, body) {
  const headers = { "content-type": "application/json", "x-sparkwave-token": token ?? "" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, credentials: "same-origin", signal: AbortSignal.timeout(15000) });
  } catch {
    throw { status: 0, message: "The server cannot be reached." };
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  throw { status: answer.status, message: content.error ?? `The server answers ${answer.status}.`, hint: content.hint ?? content.detail };
}
