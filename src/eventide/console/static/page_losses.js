// What is in no result: how much, why, from whom, and what another permitted ratio would have cost.

import { Chart, steps } from "./chart.js";
import { card, h, renderer, replace, table } from "./dom.js";
import { count, percent, plural, seconds, time } from "./format.js";

const KEPT = 720;

export function mount(root, page) {
  const streams = h("section", { class: "card" });
  const reasons = h("div", {});
  const sources = h("div", {});
  const sample = h("div", { id: "sample" });
  const cost = h("div", { id: "cost" }, h("p", { class: "note" }, "The last hour of this console is played again with other ratios; it takes some seconds."));
  const chart = new Chart("Late and rejected rows of each round, over time", 180, options);
  const buttons = h("div", { class: "tools" });
  root.append(streams, card("Over time", chart.element, h("p", { class: "note" }, h("span", { class: "key holds" }), " late rows of a round ", h("span", { class: "key line1" }), " rejected ones")),
    h("div", { class: "columns" }, card("Late rows by source", sources), card("Rejected rows by reason", reasons)),
    h("section", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "A sample of the rows"), buttons), sample),
    card("What another DRATIO would have cost", cost));
  const drawStreams = renderer(streams, summary);
  const drawReasons = renderer(reasons, (all) => all.length ? table("Reasons", [{ name: "Reason" }, { name: "Rows", number: true }],
    all.map(([reason, n]) => h("tr", {}, h("th", { scope: "row" }, reason), h("td", { class: "number" }, count(n))))) : h("p", {}, "No row was rejected since this console was opened."));
  const drawSources = renderer(sources, (all) => all.length ? table("Sources", [{ name: "Source" }, { name: "Late rows", number: true }],
    all.map(([name, n]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, count(n))))) : h("p", {}, "No row was late since this console was opened."));
  const drawButtons = renderer(buttons, (names) => names.flatMap((name) => [["late", "late"], ["rejects", "rejected"]].map(([kind, word]) =>
    h("button", { type: "button", onclick: () => look(name, kind) }, names.length > 1 ? `${word} rows of ${name}` : `${word} rows`))));
  const drawCost = renderer(cost, (names) => [h("p", { class: "note" }, "Plays the cells of the last rounds again with other ratios; takes some seconds."),
    names.map(([name, declared]) => h("button", { type: "button", onclick: () => whatIf(name, declared) }, names.length > 1 ? `Compute for ${name}` : "Compute"))]);
  let points = [];

  async function look(stream, kind) {
    try {
      const found = await page.ask(`sample?${new URLSearchParams({ stream, kind })}`);
      replace(sample, found.note ? h("p", {}, `${found.note[0].toUpperCase()}${found.note.slice(1)}.`) : [
        h("p", { class: "note" }, `The last that were written, in ${found.file}.`),
        table("Rows", found.columns.map((name) => ({ name })), found.rows.map((row) => h("tr", {}, row.map((value) => h("td", {}, value === null ? "NULL" : String(value))))))]);
    } catch (error) {
      replace(sample, h("p", {}, error.message));
    }
  }

  async function whatIf(stream, declared) {
    replace(cost, h("p", {}, "Computing …"));
    try {
      const found = await page.ask(`what-if?${new URLSearchParams({ stream })}`);
      replace(cost, found.ratios.length ? [h("p", { class: "note" }, `How ${plural(found.rounds, "round")} would have gone from a fresh start; the declared ratio in bold.`),
        table("Ratios", [{ name: "DRATIO", number: true }, { name: "Rows lost", number: true }, { name: "Mean wait of a row", number: true }],
          found.ratios.map((one) => h("tr", { class: one.ratio === declared ? "declared" : null }, h("th", { scope: "row", class: "number" }, percent(one.ratio)), h("td", { class: "number" }, percent(one.lost)), h("td", { class: "number" }, one.lag === null ? "–" : seconds(one.lag / 1e6)))))]
        : h("p", {}, "No round with rows has come since this console was opened."));
    } catch (error) {
      replace(cost, h("p", {}, error.message));
    }
  }

  function update(snapshot) {
    points = [...(snapshot.whole ? [] : points), ...snapshot.points].slice(-KEPT);
    drawStreams(snapshot.streams);
    drawReasons(snapshot.reasons);
    drawSources(snapshot.streams.flatMap((one) => one.late_by_source.map(([name, n]) => [snapshot.streams.length > 1 ? `${name} (${one.name})` : name, n])));
    drawButtons(snapshot.streams.map((one) => one.name));
    drawCost(snapshot.streams.filter((one) => one.permitted !== null).map((one) => [one.name, one.permitted]));
    chart.show([points.map(([, at]) => at / 1e6), points.map(([, , , late]) => late), points.map(([, , , , rejected]) => rejected)], {});
  }
  return { update, leave: () => chart.leave() };
}

function options(_, colour) {
  const line = (stroke) => ({ stroke, width: 2, points: { show: false } });
  return {
    scales: { x: { time: false } },
    axes: [{ values: (_, at) => steps(at, (value) => time(value * 1e6)) }, { values: (_, at) => steps(at, count) }],
    series: [{}, line(colour("alarm")), line(colour("line1"))],
  };
}

function summary(streams) {
  const lost = streams.reduce((sum, one) => sum + one.late + one.rejected, 0);
  const rows = streams.reduce((sum, one) => sum + one.rows, 0);
  return [h("p", { class: "big" }, lost ? h("strong", {}, plural(lost, "row")) : h("strong", {}, "No row"), ` of ${count(rows)} ${lost === 1 ? "is" : lost ? "are" : "is"} missing from the results.`),
    table("Losses by stream", [{ name: "Stream" }, { name: "Rows", number: true }, { name: "Late", number: true }, { name: "Rejected", number: true }, { name: "Drop ratio", number: true }, { name: "Lately", number: true }, { name: "Permitted", number: true }],
      streams.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name),
        [one.rows, one.late, one.rejected].map((n) => h("td", { class: "number" }, count(n))),
        h("td", { class: one.permitted !== null && one.drop_ratio > one.permitted ? "number alarm" : "number" }, percent(one.drop_ratio)),
        h("td", { class: "number" }, percent(one.recent_drop_ratio)),
        h("td", { class: "number" }, one.permitted === null ? "not declared" : percent(one.permitted)))))];
}
