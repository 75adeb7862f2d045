// Rounds and how long their steps take, what is kept and where, and what was logged.

import { Chart, steps } from "./chart.js";
import { card, h, renderer, table } from "./dom.js";
import { bytes, count, plural, seconds, time, instant } from "./format.js";

const KEPT = 720;

export function mount(root) {
  const facts = h("section", { class: "card" });
  const chart = new Chart("Seconds that each step of a round took, over time", 220, options);
  const key = h("p", { class: "note" });
  const state = h("div", {});
  const waiting = h("div", {});
  const log = h("pre", { class: "log", id: "log", tabindex: 0, "aria-label": "Log" });
  root.append(facts, card("Rounds", chart.element, key), h("div", { class: "columns" }, card("State", state), card("Waiting to be read", waiting)), card("Log", log));
  const drawFacts = renderer(facts, told);
  const drawState = renderer(state, (all) => table("State", [{ name: "Operator" }, { name: "Where" }, { name: "Rows", number: true }, { name: "Size", number: true }],
    all.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", {}, one.place), h("td", { class: "number" }, count(one.rows)), h("td", { class: "number" }, bytes(one.bytes))))));
  const drawWaiting = renderer(waiting, (all) => all.length ? table("Backlog", [{ name: "Stream" }, { name: "Partition" }, { name: "Rows", number: true }],
    all.map((one) => h("tr", {}, h("th", { scope: "row" }, one.stream), h("td", {}, one.partition), h("td", { class: "number" }, count(one.rows))))) : h("p", {}, "No input tells how much waits in it; a topic of Kafka does."));
  let points = [];

  function update(snapshot) {
    points = [...(snapshot.whole ? [] : points), ...snapshot.points].slice(-KEPT);
    const recent = points.slice(-60);
    const total = (one) => one.slice(4).reduce((a, b) => a + b, 0);
    const usual = recent.length ? recent.reduce((sum, one) => sum + total(one), 0) / recent.length : null;
    drawFacts({ about: snapshot.about, engine: snapshot.engine, rounds: snapshot.round + 1, usual, last: points.at(-1)?.[1] ?? null, warnings: snapshot.warnings, scheduling: snapshot.scheduling, rate: snapshot.rows_per_second });
    drawState(snapshot.state);
    drawWaiting(snapshot.backlog);
    log.textContent = snapshot.log.join("\n") || "Nothing was logged since this console was opened.";
    // Steps stand on each other.
    const sums = snapshot.steps.map((_, at) => points.map((one) => one.slice(4, 5 + at).reduce((a, b) => a + b, 0)));
    chart.show([points.map((one) => one[1]), ...sums.reverse()], { steps: snapshot.steps });
    key.replaceChildren(...snapshot.steps.flatMap((name, at) => [h("span", { class: `key line${at}` }), ` ${name} `]));
  }
  return { update, leave: () => chart.leave() };
}

function options({ steps: names }, colour) {
  return {
    scales: { x: { time: false } },
    axes: [{ values: (_, at) => steps(at, (value) => time(value * 1e6)) }, { values: (_, at) => steps(at, seconds) }],
    series: [{}, ...names.map((_, at) => ({ stroke: colour(`line${names.length - 1 - at}`), fill: colour(`line${names.length - 1 - at}`), width: 1, points: { show: false } }))],
  };
}

function told({ about, engine, rounds, usual, last, warnings, scheduling, rate }) {
  const spark = /^https?:\/\//.test(about.spark ?? "") ? about.spark : null;
  const facts = [
    ["Engine", engine],
    ["Rounds", plural(rounds, "round")],
    ["A round takes", seconds(usual)],
    ["Rows", `${count(rate)} a second`],
    ["Last round", last === null ? "–" : instant(last * 1e6, false)],
    [about.running ? "Started" : "Last written", about.started === null ? "–" : instant(about.started * 1e6, false, true)],
    about.running ? ["Restarted", about.continued_after === null ? "no: from the beginning" : `after round ${count(about.continued_after)}`] : null,
    ["Checkpoint", `${about.checkpoint} (${bytes(about.state_bytes)} of state)`],
    ...Object.entries(scheduling),
  ].filter(Boolean);
  return [h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    spark ? h("p", {}, h("a", { href: spark, rel: "noreferrer noopener", target: "_blank" }, "Spark's own page")) : null,
    warnings.map((one) => h("p", { class: "alarm" }, one))];
}
