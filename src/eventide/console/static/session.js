// Who this page is for: a link's token is exchanged once for a session, which is kept for this origin alone.

const KEPT = "eventide.session";

export function session() {
  try {
    return JSON.parse(localStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

export const forget = () => localStorage.removeItem(KEPT);

// The token leaves the address before anything else happens: it must not stay in the history of the browser.
export async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return session();
  history.replaceState(null, "", `${location.pathname}#time`);
  const answer = await fetch("session", { method: "POST", body: JSON.stringify({ token }) });
  if (answer.ok) localStorage.setItem(KEPT, JSON.stringify(await answer.json()));
  return session();
}

export async function ask(path, body) {
  const headers = { Authorization: `Bearer ${session()?.session ?? ""}` };
  const asked = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`api/${path}`, asked);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.hint ? `${found.error}: ${found.hint}` : found.error);
  return found;
}
