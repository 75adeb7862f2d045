// The page around the pages: who may see it, which page is open, and whether the engine is there.

import { h, renderer, replace } from "./dom.js";
import { Stream } from "./events.js";
import { count, seconds, time, zone } from "./format.js";
import { ask, enter, forget, session } from "./session.js";

const PAGES = { time: "Time", plan: "Plan", results: "Results", losses: "Losses", engine: "Engine" };
const main = document.getElementById("main");
const status = document.getElementById("status");
const alerts = document.getElementById("alerts");
const tabs = document.getElementById("tabs");

let open; // { name, choices, view }
let connection = "connecting";
let last; // the last snapshot
let received = 0;

const stream = new Stream((snapshot) => {
  last = snapshot;
  received = performance.now();
  if (open && snapshot.page === open.name) open.view?.update(snapshot);
  tellAlerts({ alerts: snapshot.alerts, more_alerts: snapshot.more_alerts });
  tellStatus();
}, (state) => {
  if (state === "hidden" || state === "changing") return;
  connection = state;
  if (state === "refused") {
    forget();
    refuse();
  }
  tellStatus();
});

const tellAlerts = renderer(alerts, ({ alerts: all, more_alerts: more }) => [
  ...all.map(([words, raised]) => h("p", {}, h("span", { class: "mark holds", "aria-hidden": "true" }, "●"), ` ${words} `, h("span", { class: "note" }, `since ${time(raised * 1e6)}`))),
  more ? h("p", { class: "note" }, `and ${count(more)} more alerts: eventide watch`) : null]);

function tellStatus() {
  const parts = [];
  if (connection === "ended") {
    parts.push(pill("ended", "Ended"), "The engine has ended; this is how it stood. The page goes on when it starts again.");
  } else if (connection === "lost" || connection === "broken") {
    parts.push(pill("lost", "Not reachable"));
    parts.push("The engine does not answer; the page goes on when it does. What you see is from before.");
  } else if (!last) {
    parts.push(pill("waiting", "Connecting"));
  } else if (last.failure) {
    parts.push(pill("lost", "Failed"), last.failure);
  } else if (last.stopped) {
    parts.push(pill("ended", "Stopped"), `How the run stood after round ${count(last.round)}, by its checkpoint.`);
  } else if (last.ended) {
    parts.push(pill("ended", "Ended"), `after round ${count(last.round)}`);
  } else {
    const since = (performance.now() - received) / 1000;
    parts.push(pill("running", "Running"));
    parts.push(last.round < 0 ? "no round yet: waiting for rows" : `round ${count(last.round)}`);
    parts.push(`${count(last.rows_per_second)} rows/s`);
    if (since > 5) parts.push(`nothing new for ${seconds(since)}`);
  }
  replace(status, parts.map((one, at) => (at ? h("span", {}, one) : one)), h("span", { class: "zone" }, zone));
}

const pill = (kind, text) => h("span", { class: `pill ${kind}` }, h("span", { class: "dot", "aria-hidden": "true" }), text);

function refuse() {
  stream.stop();
  open = undefined;
  last = undefined;
  replace(tabs);
  replace(alerts);
  replace(status, pill("lost", "No access"));
  replace(main, h("section", { class: "card narrow", id: "refused" },
    h("h1", {}, "This page needs a link"),
    h("p", {}, "A link opens the console once. It was used before, its time is over, or the engine has another key now."),
    h("p", {}, "A new one is printed by"),
    h("pre", {}, "eventide console --checkpoint DIR")));
}

async function show() {
  const [name, query] = location.hash.slice(1).split("?");
  const page = name in PAGES ? name : "time";
  const choices = Object.fromEntries(new URLSearchParams(query ?? ""));
  if (open?.name === page) {
    if (JSON.stringify(open.choices) !== JSON.stringify(choices)) {
      open.choices = choices;
      stream.show(page, choices);
    }
    return;
  }
  open?.view?.leave?.();
  const mine = (open = { name: page, choices });
  const module = await import(`./page_${page}.js`);
  if (open !== mine) return;
  for (const link of tabs.children) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${PAGES[page]} · Eventide`;
  replace(main);
  mine.view = module.mount(main, { choose, ask, may: session()?.may ?? [], choices: () => open.choices });
  stream.show(page, choices);
}

// A choice is part of the address: it survives a reload, and Back takes it back.
function choose(changed) {
  const choices = { ...open.choices, ...changed };
  for (const [name, value] of Object.entries(choices)) if (!value) delete choices[name];
  const query = new URLSearchParams(choices).toString();
  location.hash = query ? `${open.name}?${query}` : open.name;
}

function theme() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const tell = () => {
    button.textContent = now() === "dark" ? "☀" : "☾";
    document.dispatchEvent(new Event("themechange"));
  };
  const kept = localStorage.getItem("eventide.theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = now() === "dark" ? "light" : "dark";
    localStorage.setItem("eventide.theme", document.documentElement.dataset.theme);
    tell();
  });
  dark.addEventListener("change", tell);
  tell();
}

async function start() {
  theme();
  tellStatus();
  const known = await enter().catch(() => session());
  if (!known) {
    refuse();
    return;
  }
  replace(tabs, Object.entries(PAGES).map(([name, title]) => h("a", { href: `#${name}`, "data-page": name }, title)));
  addEventListener("hashchange", async () => {
    if (location.hash.startsWith("#token=")) await enter();
    if (location.hash !== "#main") show();
  });
  setInterval(tellStatus, 1000);
  show();
}

start();
