// What a dry run has found: tables that can be sorted, plots that can be looked into.

import { Chart } from "./chart.js";
import { card, h, replace, s, table } from "./dom.js";
import { count, number, percent, plural, seconds } from "./format.js";

const COLOURS = ["line1", "line2", "line3", "line4", "line5", "line6", "line7", "text"];
const colourOf = (at) => COLOURS[at % COLOURS.length];
const OURS = "eventide";

// Ours has the colour of the page, the yardsticks are grey, the others differ.
function coloured(run, names) {
  const others = names.filter((name) => name !== OURS && run.policies[name]?.role !== "yardstick");
  return (name) => (name === OURS ? "accent" : others.includes(name) ? colourOf(others.indexOf(name)) : "idle");
}

export function show({ runs }) {
  const main = document.getElementById("main");
  const shown = h("div", { class: "pages" });
  if (runs.length > 1) {
    const choice = h("select", { "aria-label": "Recording", onchange: () => draw(shown, runs[Number(choice.value)]) },
      runs.map((run, at) => h("option", { value: at }, run.name)));
    main.append(card(null, choice));
  }
  main.append(shown);
  draw(shown, runs[0]);
}

function draw(root, run) {
  const found = run.findings;
  const amount = found.unit === "none" ? count : (length) => (length === null ? "–" : seconds(length / 1000));
  const round = found.round_ms === null ? "row at a time" : `in rounds of ${amount(found.round_ms)}`;
  replace(root,
    h("section", { class: "card" }, h("h1", {}, run.name),
      h("p", {}, `${plural(found.rows, "row")} from ${plural(found.sources, "source")} in ${amount(run.span)}; policies may lose ${percent(found.permitted_drop_ratio)}, run ${round}.`),
      found.notes.map((note) => h("p", { class: "alarm" }, note))),
    card("What this means", run.advice.sentences.map((one) => h("p", {}, one)),
      h("p", { class: "note" }, "To paste, for Eventide:"), h("pre", {}, run.advice.eventide),
      h("p", { class: "note" }, "The nearest that Spark alone offers:"), h("pre", {}, run.advice.spark)),
    card("Lag against loss", h("p", { class: "note" }, "A point for each permitted ratio; hollow: more was lost than permitted. Choose a name to hide it."), ...tradeOff(run, amount)),
    card("Policies", policies(run, amount)),
    card("Heartbeats against rows", h("p", { class: "note" }, "How far rows and heartbeats are behind the clock: a row above a line is late for it. Drag to look closer, double-click to go back."), ...heartbeats(run, amount)),
    card("Delay of each source", h("p", { class: "note" }, "The sources that are farthest from the usual delay, in colour."), ...delays(run, amount)),
    card("Disorder", disorder(found, amount)),
    card("Sources", sources(found, amount)));
}

// A table that is sorted by the column that is chosen.
function sorted(caption, columns, rows, className, rowOf) {
  const place = h("div", {});
  let by = null;
  let down = true;
  const drawn = () => {
    const order = [...rows];
    if (by) order.sort((a, b) => { const [x, y] = [by.value(a), by.value(b)]; return (down ? -1 : 1) * (x === y ? 0 : x === null ? -1 : y === null ? 1 : x < y ? -1 : 1); });
    const found = table(caption, columns, order.map((row) => h("tr", rowOf(row), columns.map((column, at) =>
      h(at ? "td" : "th", { class: [column.number ? "number" : "", column.alarm?.(row) ? "alarm" : ""].join(" ").trim() || null, scope: at ? null : "row", title: column.hint?.(row) }, column.text(row))))), className);
    found.querySelectorAll("thead th").forEach((head, at) => {
      const column = columns[at];
      const name = head.textContent;
      if (by === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      replace(head, h("button", { type: "button", class: "quiet sort", onclick: () => { down = by === column ? !down : true; by = column; drawn(); } }, name, by === column ? (down ? " ↓" : " ↑") : ""));
    });
    replace(place, found);
  };
  drawn();
  return place;
}

function policies(run, amount) {
  const rows = Object.entries(run.findings.policies).map(([name, one]) => ({ name, ...one, ...run.policies[name] }));
  const share = (key, name, alarm) => ({ name, number: true, value: (row) => row[key], text: (row) => percent(row[key]), alarm });
  const length = (key, name) => ({ name, number: true, value: (row) => row[key], text: (row) => (row[key] === null ? "–" : amount(row[key])) });
  return sorted("Policies", [
    { name: "Policy", value: (row) => row.name, text: (row) => row.name, hint: (row) => row.meaning },
    share("drop_ratio", "Lost", (row) => !row.keeps), share("drop_ratio_after_1000", "Later on"), share("worst_source_drop_ratio", "Worst source"), share("worst_stretch_drop_ratio", "Worst stretch"),
    length("lag_mean_ms", "Mean lag"), length("lag_p95_ms", "95 % lag"),
    { name: "Rows buffered", number: true, value: (row) => row.buffered_mean_rows, text: (row) => number(row.buffered_mean_rows < 1000 ? Number(row.buffered_mean_rows.toPrecision(3)) : Math.round(row.buffered_mean_rows)) },
    { name: "What it is", value: (row) => row.meaning, text: (row) => row.meaning },
  ], rows, null, (row) => ({ class: row.role === "ours" ? "declared" : row.role === "yardstick" ? "idle" : null, "data-policy": row.name }));
}

function disorder(found, amount) {
  const measured = [
    ["Lateness, all sources together", percent(found.disorder.out_of_order), found.disorder.lateness_ms],
    ["Lateness within sources", percent(found.disorder.out_of_order_within_sources), found.disorder.lateness_within_sources_ms],
    ["Delay (arrival less time)", "", found.disorder.delay_ms],
  ];
  const names = Object.keys(found.disorder.lateness_ms);
  return [table("Disorder", [{ name: "" }, { name: "Out of order", number: true }, ...names.map((name) => ({ name, number: true }))],
    measured.map(([label, share, lengths]) => h("tr", {}, h("th", { scope: "row" }, label), h("td", { class: "number" }, share), names.map((name) => h("td", { class: "number" }, amount(lengths[name])))))),
  h("p", { class: "note" }, `Lateness: behind the largest time so far. ${plural(found.disorder.future_rows, "row")} from the future.`)];
}

function sources(found, amount) {
  const all = found.disorder.per_source;
  const find = h("input", { type: "search", placeholder: "Find a source", "aria-label": "Find a source", oninput: () => drawn() });
  const place = h("div", {});
  const length = (key, name) => ({ name, number: true, value: (row) => row[key], text: (row) => amount(row[key]) });
  const drawn = () => replace(place, sorted("Sources", [
    { name: "Source", value: (row) => row.source, text: (row) => row.source },
    { name: "Rows", number: true, value: (row) => row.rows, text: (row) => count(row.rows) },
    { name: found.unit === "none" ? "Rows per unit" : "Rows per second", number: true, value: (row) => row.rows_per_second, text: (row) => number(row.rows_per_second) },
    length("clock_offset_ms", "Clock offset"), length("median_delay_ms", "Median delay"),
    { name: "Out of order", number: true, value: (row) => row.out_of_order, text: (row) => percent(row.out_of_order) },
    length("longest_silence_ms", "Longest silence"),
  ], all.filter((row) => row.source.toLowerCase().includes(find.value.toLowerCase())).slice(0, 200), null, () => ({})));
  drawn();
  return [h("div", { class: "row" }, find, all.length < found.sources ? h("span", { class: "note" }, `the ${count(all.length)} with most rows`) : null), place];
}

// Marks at 1, 10, 100 ... between two numbers.
const decades = (low, high) => {
  const found = [];
  for (let at = Math.ceil(Math.log10(low)); at <= Math.log10(high); at += 1) found.push(10 ** at);
  return found;
};

function tradeOff(run, amount) {
  const names = Object.keys(run.curves);
  const lags = names.flatMap((name) => run.curves[name].map((one) => one.lag).filter((lag) => lag > 0));
  // There is no place for nothing on a logarithmic axis: what lost or waited nothing stands at the edge.
  const [leastLag, mostLag] = lags.length ? [Math.min(...lags) / 2, Math.max(...lags) * 1.5] : [0.5, 2];
  const leastLoss = 0.5 / Math.max(run.findings.rows, 1000);
  const mostLoss = Math.min(1.2, 2 * Math.max(leastLoss, ...names.flatMap((name) => run.curves[name].map((one) => one.lost))));
  const [width, height, left, bottom] = [900, 380, 80, 40];
  const x = (lost) => left + (width - left - 10) * Math.log(Math.max(lost, leastLoss) / leastLoss) / Math.log(mostLoss / leastLoss);
  const y = (lag) => height - bottom - (height - bottom - 10) * Math.log(Math.max(lag ?? 0, leastLag) / leastLag) / Math.log(mostLag / leastLag);
  const grid = [
    ...decades(leastLoss * 2, mostLoss).map((at) => [s("line", { class: "grid", x1: x(at), x2: x(at), y1: 10, y2: height - bottom }), s("text", { class: "fact", x: x(at), y: height - bottom + 18, "text-anchor": "middle" }, `${number(100 * at)} %`)]),
    s("text", { class: "fact", x: x(0), y: height - bottom + 18, "text-anchor": "middle" }, "none"),
    s("text", { class: "fact", x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "rows lost"),
    ...decades(leastLag, mostLag).map((at) => [s("line", { class: "grid", x1: left, x2: width - 10, y1: y(at), y2: y(at) }), s("text", { class: "fact", x: left - 8, y: y(at) + 4, "text-anchor": "end" }, amount(at))]),
  ];
  const colour = coloured(run, names);
  const lines = names.map((name) => {
    const points = run.curves[name];
    const role = run.policies[name]?.role;
    return s("g", { class: `curve ${colour(name)} ${role} ${name}`, "data-policy": name },
      s("polyline", { points: points.map((one) => `${x(one.lost)},${y(one.lag)}`).join(" ") }),
      points.map((one) => s("circle", { cx: x(one.lost), cy: y(one.lag), r: role === "ours" ? 6 : 4.5, class: one.keeps ? null : "hollow", tabindex: 0 },
        s("title", {}, `${name}: permitted ${percent(one.permitted)}, lost ${percent(one.lost)}, mean lag ${one.lag === null ? "–" : amount(one.lag)}`))));
  });
  const svg = s("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Mean lag of kept rows against rows lost, for every policy" }, grid, lines);
  return [svg, legend(names.map((name) => ({ name, colour: colour(name) })), (at, visible) => lines[at].classList.toggle("away", !visible))];
}

function legend(entries, toggle) {
  return h("p", { class: "legend" }, entries.map(({ name, colour }, at) => {
    const button = h("button", { type: "button", class: "quiet", "aria-pressed": "true", onclick: () => {
      const visible = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(visible));
      toggle(at, visible);
    } }, h("span", { class: `key ${colour}`, "aria-hidden": "true" }), ` ${name}`);
    return button;
  }));
}

// Nothing, and the tens that are no less than a length, in both directions.
const marks = (low, high, least) => [...(low < -least ? decades(least, -low).reverse().map((one) => -one) : []), 0, ...(high > least ? decades(least, high) : [])];

// Points and lines over the time from the start. Most lengths may be a thousandth of the longest: then the axis is one of logarithms.
function chartOf(label, series, amount, values) {
  const usual = [...values].sort((a, b) => Math.abs(a) - Math.abs(b))[Math.floor(0.9 * values.length)] || 1;
  const wide = values.some((one) => Math.abs(one) > 10 * Math.abs(usual));
  const lengths = (_, all) => all.map((one) => (one === null ? "" : amount(one)));
  const chart = new Chart(label, 320, (shape, colour) => ({
    scales: { x: { time: false }, y: wide ? { distr: 4, asinh: Math.abs(usual) } : {} },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
    series: [{}, ...series.map((one) => {
      const ink = colour(one.colour);
      return one.line ? { stroke: ink, width: one.wide ? 2.5 : 1.2, points: { show: false }, spanGaps: true }
        : { stroke: ink, paths: () => null, points: { show: true, size: one.size ?? 3, fill: ink, stroke: ink, width: 0 } };
    })],
    axes: [{ values: lengths }, wide ? { splits: (_, __, low, high) => marks(low, high, Math.abs(usual) / 2), filter: (_, all) => all, values: lengths } : { values: lengths }],
  }));
  const at = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const place = new Map(at.map((x, n) => [x, n]));
  const columns = series.map((one) => {
    const column = new Array(at.length).fill(null);
    one.x.forEach((x, n) => { column[place.get(x)] = one.y[n]; });
    return column;
  });
  // Drawn once it has its place, as wide as that is.
  requestAnimationFrame(() => chart.show([at, ...columns], series.map((one) => one.name)));
  return [chart.element, legend(series, (n, visible) => chart.plot.setSeries(n + 1, { show: visible }))];
}

function delays(run, amount) {
  const { at, delay, source, sources: names } = run.delays;
  const of = (number) => at.map((x, n) => [x, delay[n], source[n]]).filter(([, , one]) => one === number);
  const others = of(-1);
  const series = [
    ...(others.length ? [{ name: "all others", colour: "idle", x: others.map(([x]) => x), y: others.map(([, y]) => y) }] : []),
    ...names.map((name, n) => { const mine = of(n); return { name, colour: colourOf(n), x: mine.map(([x]) => x), y: mine.map(([, y]) => y) }; }),
  ];
  return chartOf("Delay of each source over time", series, amount, delay);
}

function heartbeats(run, amount) {
  const { at, delay } = run.delays;
  const [lostAt, lost] = run.lost;
  const series = [
    { name: "rows", colour: "idle", x: at, y: delay },
    ...Object.entries(run.trails).map(([name, [x, , middle]]) => ({ name, colour: name === OURS ? "accent" : name === "fixed_best" ? "text" : "line1", x, y: middle, line: true, wide: name === OURS })),
    ...(lost.length ? [{ name: "lost by eventide", colour: "alarm", x: lostAt, y: lost, size: 6 }] : []),
  ];
  return chartOf("Heartbeats against rows, by how far they are behind the clock", series, amount, delay);
}
