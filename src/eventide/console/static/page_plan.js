// What computes what, how much of it there is and where, and which way waits for which.

import { card, h, renderer, replace, s, table } from "./dom.js";
import { amount, bytes, count, instant, number, seconds } from "./format.js";
import { drawnTraces } from "./traces.js";

const WIDTH = 220;
const HEIGHT = 108;
const GAP_X = 76;
const GAP_Y = 28;

const NOTE = "Rows go from left to right. A way in red is the one that its reader waits for. Choose a step for its SQL.";

// `run`: whether there is one to be seen, or the plan alone.
export function mount(root, page, note = NOTE, run = true) {
  const graph = h("div", { class: "scroll graph" });
  const detail = h("section", { class: "card", id: "detail", "aria-live": "polite" });
  const beats = h("div", { id: "traces" });
  root.append(card("Plan", h("p", { class: "note" }, note), graph),
    run ? card("Heartbeats on their way", h("p", { class: "note" }, "Some heartbeats are followed from their source through every step: a bar is the time that one waited there, in red while it still does."), beats) : "", detail);
  const drawTraces = renderer(beats, drawnTraces);
  const drawDetail = renderer(detail, (value) => described(value));
  let texts;
  let before;
  let rates = {};
  let shown;
  page.ask("plan").then((found) => { texts = found; if (shown) drawDetail({ ...shown, texts }); }, () => { texts = {}; });

  function update(snapshot) {
    const now = { at: snapshot.now, nodes: Object.fromEntries(snapshot.nodes.map((one) => [one.name, one])) };
    if (before && now.at > before.at + 0.9) {
      rates = Object.fromEntries(snapshot.nodes.map((one) => [one.name, rate(before.nodes[one.name], one, now.at - before.at)]));
      before = now;
    }
    before ??= now;
    const focused = document.activeElement?.dataset?.node;
    replace(graph, drawn(snapshot, rates, page));
    if (focused) graph.querySelector(`[data-node="${CSS.escape(focused)}"]`)?.focus();
    const chosen = now.nodes[snapshot.node] ?? snapshot.nodes.find((one) => one.kind === "query") ?? snapshot.nodes[0];
    if (chosen && chosen.name !== snapshot.node) page.choose({ node: chosen.name });
    shown = { node: chosen, why: snapshot.why, rate: rates[chosen?.name] };
    drawDetail({ ...shown, texts });
    if (run) drawTraces({ traces: snapshot.traces, waits: snapshot.waits, now: snapshot.now });
  }
  return { update };
}

const rate = (old, now, length) => (old ? { in: (now.rows_in - old.rows_in) / length, out: (now.rows_out - old.rows_out) / length } : undefined);

// A step stands one column to the right of all that it reads.
function placed(nodes, edges) {
  const depth = Object.fromEntries(nodes.map((one) => [one.name, 0]));
  for (let i = 0; i < nodes.length; i += 1) for (const { from, to } of edges) depth[to] = Math.max(depth[to], depth[from] + 1);
  const columns = [];
  for (const one of nodes) (columns[depth[one.name]] ??= []).push(one.name);
  const tallest = Math.max(...columns.map((one) => one.length));
  const at = {};
  columns.forEach((names, x) => names.forEach((name, y) => {
    const top = ((tallest - names.length) * (HEIGHT + GAP_Y)) / 2;
    at[name] = { x: 4 + x * (WIDTH + GAP_X), y: 4 + top + y * (HEIGHT + GAP_Y) };
  }));
  return { at, width: columns.length * (WIDTH + GAP_X) - GAP_X + 8, height: tallest * (HEIGHT + GAP_Y) - GAP_Y + 8 };
}

function drawn(snapshot, rates, page) {
  const { at, width, height } = placed(snapshot.nodes, snapshot.edges);
  const ways = [...snapshot.edges].sort((a, b) => Number(a.waits) - Number(b.waits)).map((edge) => {
    const x1 = at[edge.from].x + WIDTH, y1 = at[edge.from].y + HEIGHT / 2, x2 = at[edge.to].x, y2 = at[edge.to].y + HEIGHT / 2;
    const bend = (x2 - x1) / 2;
    return s("path", { class: edge.waits ? "way waits" : "way", d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "data-way": `${edge.from} ${edge.to}` },
      s("title", {}, `${edge.from} to ${edge.to}${edge.waits ? ": waited for" : ""}`));
  });
  const boxes = snapshot.nodes.map((one) => box(one, at[one.name], one.name === snapshot.node, rates[one.name], page));
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "The plan" }, ways, boxes);
}

function box(node, { x, y }, chosen, known, page) {
  // A plan that is not run has words of its own.
  const lines = node.lines?.map((line) => short(line, 32)) ?? [
    known ? `${count(known.in)} rows/s in, ${count(known.out)} out` : `${count(node.rows_in ?? 0)} rows in`,
    node.kind === "stream" ? (node.backlog === null ? `${count(node.sources)} sources` : `${count(node.backlog)} rows wait`)
      : node.passes ? "its reader reads its inputs" : `${count(node.state_rows)} rows, ${bytes(node.state_bytes)} (${node.place})`,
    node.passes ? "" : node.lag === null || node.lag === undefined ? "no time yet" : `${amount(node.lag, node.unitless)} behind`,
  ];
  const choose = () => page.choose({ node: node.name });
  return s("g", { class: chosen ? "node chosen" : "node", tabindex: 0, role: "button", "aria-pressed": String(chosen), "data-node": node.name, transform: `translate(${x} ${y})`,
    onclick: choose, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
    s("rect", { width: WIDTH, height: HEIGHT, rx: 10 }),
    s("text", { class: "kind", x: 14, y: 22 }, node.kind),
    s("text", { class: "name", x: 14, y: 42 }, short(node.name)),
    lines.map((line, n) => s("text", { class: "fact", x: 14, y: 62 + 17 * n }, line)),
    s("title", {}, node.name));
}

const short = (name, most = 24) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

// What a run has shown of a step.
const seen = (node, known) => [
  ["Time", node.bound === null || node.bound === undefined ? "not known yet" : `${instant(node.bound, node.unitless)} is closed`],
  ["Rows", `${count(node.rows_in)} in, ${count(node.rows_out)} out`],
  ["Selectivity", node.rows_in ? number(node.rows_out / node.rows_in) : "–"],
  ["Time for a row", node.seconds && node.rows_in ? seconds(node.seconds / node.rows_in) : "–"],
  known ? ["Now", `${count(known.in)} rows/s in, ${count(known.out)} out`] : null,
  node.open === undefined ? null : ["Held", `${count(node.open)} panes`],
];

function described({ node, why, texts, rate: known }) {
  if (!node) return [];
  const text = texts && { ...texts.streams, ...texts.queries, ...texts.operators }[node.name];
  const facts = [
    ...(node.lines ? [] : seen(node, known)),
    text?.reads && node.lines ? ["Reads", [text.reads].flat().join(", ")] : null,
    text?.measured ? ["Measured", text.measured.words] : null,
    text?.columns ? ["Columns", Object.entries(text.columns).map(([name, type]) => `${name} ${type}`).join(", ")] : null,
    text?.values?.length ? ["Values", text.values.map((one) => `${one.sql} AS ${one.name}`).join(", ")] : null,
    text?.window?.words ? ["Windows", text.window.words] : null,
    text?.closes ? ["Closes", text.closes] : null,
    text?.policy ? ["Policy", text.policy] : null,
    text?.slices ? ["Keeps", text.slices.words] : null,
    text?.held?.length ? ["Keeps", text.held.join("; ")] : null,
  ].filter(Boolean);
  const times = text?.temporal ?? [];
  return [h("h2", {}, node.name, h("span", { class: "note" }, ` ${node.kind}`)),
    why ? h("p", { class: "why" }, why) : null,
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    times.length ? table("Columns that carry time", [{ name: "Carries time" }, { name: "Direction" }, { name: "After heartbeat h" }],
      times.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", {}, one.direction), h("td", {}, one.after)))) : null,
    ...[["Where", text?.where], ["Reduce", text?.reduce], ["Merge", text?.merge?.sql]].filter(([, sql]) => sql)
      .map(([name, sql]) => h("details", { open: name === "Reduce" }, h("summary", {}, `${name}: SQL`), h("pre", {}, sql)))];
}
