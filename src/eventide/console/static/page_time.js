// How far every source has come, and who holds the others back.

import { Chart, steps } from "./chart.js";
import { card, h, renderer, table } from "./dom.js";
import { amount, count, instant, percent, plural, seconds, time } from "./format.js";

const KEPT = 720;
const STATES = {
  holds: "holds time back",
  "waited for": "on time",
  idle: "idle: not waited for",
  gone: "over: not waited for",
};

export function mount(root, page) {
  const headline = h("section", { class: "card headline", "aria-live": "polite" });
  const streams = h("div", { class: "tiles" });
  const find = h("input", { type: "search", id: "find", placeholder: "Find a source", "aria-label": "Find a source", value: page.choices().find });
  const sort = h("select", { id: "sort", "aria-label": "Order of the sources" },
    [["", "furthest behind first"], ["silent", "longest silent first"], ["late", "most late rows first"], ["name", "by name"]]
      .map(([value, text]) => h("option", { value, selected: page.choices().sort === value }, text)));
  const show = h("select", { id: "show", "aria-label": "How many sources" },
    [8, 25, 100].map((n) => h("option", { value: n, selected: page.choices().show === String(n) }, `${n} sources`)));
  const sources = h("div", {});
  const legend = h("p", { class: "note" });
  const chart = new Chart("How far the heartbeat of each source is behind the clock, over time", 280, options);
  let later;
  find.addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(() => page.choose({ find: find.value }), 250);
  });
  sort.addEventListener("change", () => page.choose({ sort: sort.value }));
  show.addEventListener("change", () => page.choose({ show: show.value === "8" ? "" : show.value }));
  root.append(headline, streams,
    card("Behind the clock", chart.element, legend),
    h("section", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Sources"), h("div", { class: "tools" }, find, sort, show)), sources));

  const drawHeadline = renderer(headline, sentence);
  const drawStreams = renderer(streams, (all) => all.length < 2 ? [] : all.map((one) => tile(one, page)));
  const drawSources = renderer(sources, sourceTable);
  let frames = [];
  let chosen;

  function update(snapshot) {
    const stream = snapshot.streams.find((one) => one.name === snapshot.stream);
    if (!stream) return;
    if (snapshot.whole || chosen !== snapshot.stream) {
      const lines = chosen === snapshot.stream ? frames.filter((one) => one.beats) : [];
      const known = new Set(lines.map((one) => one.x));
      frames = [...snapshot.points.map(([, x, beat]) => ({ x, beat })).filter((one) => !known.has(one.x)), ...lines].sort((a, b) => a.x - b.x);
      chosen = snapshot.stream;
    } else {
      frames.push(...snapshot.points.map(([, x, beat]) => ({ x, beat })));
    }
    if (snapshot.points.length || snapshot.whole) {
      const beats = Object.fromEntries((stream.shown ?? []).map((one) => [one.name, one.heartbeat]));
      const frame = { x: stream.clock, beat: stream.heartbeat, beats, band: stream.band, latest: stream.latest };
      frames = frames.filter((one) => one.x < frame.x);
      frames.push(frame);
    }
    frames = frames.slice(-KEPT);
    drawHeadline({ stream, ended: snapshot.ended, many: snapshot.streams.length > 1 });
    drawStreams(snapshot.streams.map((one) => ({ ...one, chosen: one.name === chosen })));
    drawSources({ stream, asked: page.choices() });
    drawChart(stream);
  }

  function drawChart(stream) {
    const lines = (stream.shown ?? []).slice(0, 8).map((one) => ({ name: one.name, state: one.state }));
    lines.sort((a, b) => Number(a.state === "holds") - Number(b.state === "holds"));
    const away = (frame, beat) => beat === null || beat === undefined ? null
      : stream.unitless ? beat - (frame.latest ?? frame.x) : (beat - frame.x) / 1e6;
    const xs = frames.map((one) => (stream.unitless ? one.x : one.x / 1e6));
    const band = (at) => frames.map((one) => (one.band ? away(one, one.band[at]) : null));
    const data = [xs, band(0), band(1), band(3), band(4), frames.map((one) => away(one, one.beat)),
      ...lines.map((line) => frames.map((one) => away(one, one.beats?.[line.name])))];
    chart.show(data, { lines, unitless: stream.unitless });
    const named = lines.find((one) => one.state === "holds");
    legend.replaceChildren("Up is closer to the clock. ", h("span", { class: "key main" }), " all sources together",
      ...(named ? [h("span", { class: "key holds" }), ` ${named.name}`] : []),
      h("span", { class: "key other" }), " those listed below", h("span", { class: "key band" }), " where 50 % and 90 % of all sources are");
  }

  return { update, leave: () => chart.leave() };
}

function options({ lines, unitless }, colour) {
  const line = (stroke, width, more) => ({ stroke, width, points: { show: false }, spanGaps: true, ...more });
  return {
    scales: { x: { time: false } },
    axes: [
      { values: (_, at) => steps(at, (value) => (unitless ? count(value) : time(value * 1e6))) },
      { values: (_, at) => steps(at, (value) => (unitless ? count(value) : seconds(value))) },
    ],
    bands: [{ series: [4, 1], fill: colour("band-wide") }, { series: [3, 2], fill: colour("band") }],
    series: [{},
      ...[1, 2, 3, 4].map(() => line("transparent", 0)),
      line(colour("text"), 2),
      ...lines.map((one) => one.state === "holds" ? line(colour("alarm"), 2.5)
        : line(colour(one.state === "waited for" ? "accent" : "idle"), 1, { dash: one.state === "waited for" ? [] : [4, 4] })),
    ],
  };
}

function sentence({ stream, ended, many }) {
  const name = many ? ` of ${stream.name}` : "";
  const first = stream.heartbeat === null
    ? h("p", { class: "big" }, ended ? "Every window is closed." : `Time${name} is not known yet: no window can close.`)
    : h("p", { class: "big" }, `Time${name} is at `, h("strong", {}, instant(stream.heartbeat, stream.unitless)),
        stream.lag === null ? "" : `, ${amount(stream.lag, stream.unitless)} behind the latest row.`);
  const holder = stream.holder;
  const second = !holder || ended ? h("p", {}, ended ? "Nobody is waited for any more." : "No single source holds time back.")
    : h("p", {}, h("span", { class: "mark holds" }, "●"), " ", h("strong", { class: "alarm", id: "holder" }, holder.name),
        " holds time back", holder.silent ? `: silent for ${amount(holder.silent, stream.unitless)}.` : ": it is behind the others.");
  const out = stream.left_out.map((one) => `${plural(one.count, "source")} not waited for (${one.rule})`);
  const future = stream.future ? [`${plural(stream.future, "source")} with times from the future`] : [];
  return [h("div", {}, first, second, out.length + future.length ? h("p", { class: "note" }, [...out, ...future].join("; ")) : null), ratio(stream)];
}

// How much of what is permitted has been used: in words, and as a bar with a mark.
function ratio(stream) {
  const limit = stream.permitted;
  const share = stream.drop_ratio;
  const beyond = limit !== null && share > limit;
  const scale = Math.max(limit ?? 0, share, 1e-6) * 1.25;
  const words = limit === null ? `${percent(share)} of the rows were late` : `${percent(share)} late of ${percent(limit)} permitted`;
  const worst = stream.worst_source;
  return h("div", { class: "gauge" },
    h("p", {}, h("strong", { class: beyond ? "alarm" : null }, words)),
    limit === null ? null : h("div", { class: "bar-gauge" },
      h("progress", { max: scale, value: share, class: beyond ? "beyond" : null, "aria-label": words })),
    h("p", { class: "note" }, `lately ${percent(stream.recent_drop_ratio)}`,
      worst ? `; worst source ${worst.name}: ${percent(worst.ratio)}` : ""));
}

function tile(stream, page) {
  return h("button", { type: "button", class: "tile", "aria-pressed": String(stream.chosen), onclick: () => page.choose({ stream: stream.name }) },
    h("strong", {}, stream.name),
    h("span", {}, stream.lag === null ? "no time yet" : `${amount(stream.lag, stream.unitless)} behind`),
    h("span", { class: stream.permitted !== null && stream.drop_ratio > stream.permitted ? "alarm" : "note" }, `${percent(stream.drop_ratio)} late`),
    stream.holder ? h("span", { class: "alarm" }, `● ${stream.holder.name}`) : h("span", { class: "note" }, plural(stream.sources, "source")));
}

function sourceTable({ stream, asked }) {
  const shown = stream.shown ?? [];
  const found = asked.find ? `${plural(stream.matches, "source")} of ${count(stream.sources)} with “${asked.find}” in the name` : `${plural(stream.sources, "source")}`;
  const more = stream.matches > shown.length ? `; ${count(stream.matches - shown.length)} more are not listed` : "";
  const rows = shown.map((one) => h("tr", { class: one.state.replace(" ", "-"), "data-source": one.name },
    h("th", { scope: "row" }, one.name),
    h("td", {}, h("span", { class: `mark ${one.state.replace(" ", "-")}`, "aria-hidden": "true" }, "●"), " ", one.rule ? `${one.rule}: not waited for` : STATES[one.state] ?? one.state,
      one.future ? h("span", { class: "badge" }, "from the future") : null),
    h("td", { class: "number" }, instant(one.heartbeat, stream.unitless)),
    h("td", { class: "number" }, one.heartbeat === null || stream.latest === null ? "–" : amount(Math.max(0, stream.latest - one.heartbeat), stream.unitless)),
    h("td", { class: "number" }, one.silent === null ? "never" : one.silent === 0 ? "just now" : `${amount(one.silent, stream.unitless)} ago`),
    h("td", { class: "number" }, count(one.late))));
  return [h("p", { class: "note" }, `${found}${more}.`),
    shown.length ? table("Sources, their heartbeats and late rows",
      [{ name: "Source" }, { name: "State" }, { name: "Heartbeat", number: true, title: "No row with this time or an earlier one is to come" },
        { name: "Behind the latest row", number: true }, { name: "Heard", number: true }, { name: "Late rows", number: true, title: "Since this console was opened first" }], rows, "sources")
      : h("p", {}, asked.find ? "No source has that in its name." : "This stream has no sources yet.")];
}
