// Heartbeats that are followed from their source: a row for every step, a bar for the time that each waited there.

import { h, s, table } from "./dom.js";
import { count, instant, seconds, time } from "./format.js";

const NAME = 170;
const WIDTH = 1100;
const ROW = 24;
const WORDS = 420;

export function drawnTraces({ traces, waits, now }) {
  if (!traces.length) return [h("p", {}, "No heartbeat has been followed yet: they are sampled in rounds that have rows.")];
  const usual = waits.map((one) => h("tr", {}, h("th", { scope: "row" }, one.step),
    [count(one.traces), seconds(one.mean), seconds(one.longest)].map((text) => h("td", { class: "number" }, text))));
  return [...traces.map((one) => drawn(one, now)),
    usual.length ? table("Waits of heartbeats at each step", [{ name: "Step" }, { name: "Heartbeats", number: true }, { name: "Waited on average", number: true }, { name: "At most", number: true }], usual) : null];
}

function drawn(trace, now) {
  const who = trace.source ? `${trace.source} of ${trace.stream}` : trace.stream;
  const at = trace.sampled.at;
  const title = `${instant(trace.time, trace.time_at === null)} of ${who}${at === null ? "" : `, sampled at ${time(at * 1e6)}`}`;
  const from = at ?? 0;
  const until = Math.max(from + 1e-6, trace.over?.at ?? now);
  const place = (moment) => NAME + ((moment - from) / (until - from)) * (WIDTH - NAME - WORDS);
  const rows = trace.visits.map((visit, n) => {
    const y = n * ROW;
    const known = visit.arrived.at !== null;
    const x = known ? place(visit.arrived.at) : NAME;
    const end = known ? place(visit.left?.at ?? until) : NAME;
    return [
      s("text", { class: "fact", x: 0, y: y + 16 }, short(visit.step), s("title", {}, visit.step)),
      known ? s("rect", { class: visit.left ? "wait" : "wait waits", x, y: y + 5, width: Math.max(2, end - x), height: ROW - 10, rx: 3 }) : null,
      s("text", { class: "fact", x: WIDTH - WORDS + 12, y: y + 16 }, short(visit.words, 62), s("title", {}, visit.words)),
    ];
  });
  const height = trace.visits.length * ROW;
  const told = `${title}: ${trace.visits.map((one) => `${one.step} ${one.words}`).join("; ")}`;
  return h("figure", { class: "trace" }, h("figcaption", {}, title),
    h("div", { class: "scroll" }, s("svg", { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": told }, rows)));
}

const short = (text, most = 24) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
