// The results of a query as they come: early values with their errors, final ones in their place, and what is still open.

import { Chart, steps } from "./chart.js";
import { card, h, renderer, table } from "./dom.js";
import { amount, count, instant, number, percent, plural, seconds, span, time } from "./format.js";

const KEPT = 300;
const SHOWN = 24;
const LINES = 8;

export function mount(root, page) {
  const pick = h("select", { id: "query", "aria-label": "Query" });
  const value = h("select", { id: "value", "aria-label": "Value that is drawn" });
  const group = h("input", { id: "group", type: "text", placeholder: "all groups, or name=value", "aria-label": "Group to refresh" });
  const refresh = h("button", { type: "button", id: "refresh", class: "main", disabled: !page.may.includes("prod") }, "Refresh");
  const answer = h("p", { class: "note", id: "answer", role: "status" }, page.may.includes("prod") ? "Refresh asks for early results of the windows that are open." : "This session may only read: it cannot ask for early results.");
  const rows = h("div", { id: "rows" });
  const open = h("div", { id: "open" });
  const accuracy = h("div", {});
  const key = h("p", { class: "note" });
  const chart = new Chart("The chosen value over the windows, a line for each group", 240, valueOptions);
  const curve = new Chart("Expected error by how early the answer was", 180, curveOptions);
  const curveCard = card("What early answers are worth", accuracy, curve.element, h("p", { class: "note" }, "The expected error of a value, by how much of the window's last slide had passed when the answer was given."));
  root.append(
    h("section", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Results of ", pick), h("div", { class: "tools" }, group, refresh)), answer),
    h("div", { class: "columns" }, h("section", { class: "card" }, h("div", { class: "row" }, h("h2", {}, "Over time"), h("div", { class: "tools" }, value)), chart.element, key), card("Open windows", open)),
    card("Newest results", rows), curveCard);
  pick.addEventListener("change", () => page.choose({ query: pick.value }));
  value.addEventListener("change", () => draw());
  const drawPick = renderer(pick, ({ queries, query }) => queries.map((name) => h("option", { value: name, selected: name === query }, name)));
  const drawValues = renderer(value, (names) => names.map((name) => h("option", { value: name }, name)));
  const drawOpen = renderer(open, openWindows);
  const drawRows = renderer(rows, rowsTable);
  const drawAccuracy = renderer(accuracy, accuracyWords);
  let query;
  let columns = [];
  let held = new Map(); // by window and group, the last row of it, each with when it came
  let last;

  refresh.addEventListener("click", async () => {
    refresh.disabled = true;
    const started = performance.now();
    try {
      const found = await page.ask("prod", { query, groups: groupsOf(group.value, last?.groups ?? []) });
      const shares = found.rows.map((one) => one.completeness).filter((one) => typeof one === "number");
      const errors = found.rows.flatMap((one) => Object.entries(one).filter(([name, v]) => name.endsWith("_error") && typeof v === "number").map(([, v]) => v));
      take(found.rows.map((one) => ({ ...one, asked: true })));
      answer.textContent = `${plural(found.rows.length, "early result")} as of round ${count(found.round)}, ${seconds((performance.now() - started) / 1000)} after asking`
        + (shares.length ? `; ${percent(mean(shares))} of the rows are there` : "")
        + (errors.length ? `; expected error ${percent(mean(errors))}` : "; how far off they may be is not known yet") + ".";
      draw();
    } catch (error) {
      answer.textContent = error.message;
    }
    refresh.disabled = !page.may.includes("prod");
  });

  function take(found) {
    for (const one of found) {
      const names = (columns.length ? columns : Object.keys(one).map((name) => ({ name, role: "value" }))).filter((c) => c.role === "value" && !c.number).map((c) => c.name);
      const name = JSON.stringify([one.window_start, one.window_end, ...(last.groups.length ? last.groups : names).map((g) => one[g])]);
      held.delete(name);
      held.set(name, one);
    }
    while (held.size > KEPT) held.delete(held.keys().next().value);
  }

  function update(snapshot) {
    if (snapshot.whole || query !== snapshot.query) held = new Map();
    query = snapshot.query;
    last = snapshot;
    if (snapshot.columns.length) columns = snapshot.columns;
    take(snapshot.rows.map((row) => Object.fromEntries(snapshot.columns.map((c, at) => [c.name, row[at]]))));
    drawPick({ queries: snapshot.queries, query });
    drawOpen({ open: snapshot.open, count: snapshot.open_count, noun: snapshot.noun, unitless: snapshot.unitless, ended: snapshot.ended });
    drawAccuracy(snapshot.accuracy);
    curveCard.hidden = !snapshot.accuracy?.curve.length;
    if (snapshot.accuracy?.curve.length) {
      const { curve: points, values } = snapshot.accuracy;
      curve.show([points.map((one) => one.point), ...values.map((_, at) => points.map((one) => one.errors[at]))], { values });
    }
    draw();
  }

  function draw() {
    const numeric = columns.filter((one) => one.role === "value" && one.number && !last.groups.includes(one.name)).map((one) => one.name);
    drawValues(numeric);
    const all = [...held.values()];
    drawRows({ columns, rows: all.slice(-SHOWN).reverse(), total: last.total, unitless: last.unitless, groups: last.groups, stopped: last.stopped });
    const chosen = value.value || numeric[0];
    const instants = (one) => (last.unitless ? Number(one.window_end) : Date.parse(one.window_end) / 1000);
    const label = (one) => (last.groups.length ? last.groups : columns.filter((c) => c.role === "value" && !c.number).map((c) => c.name)).map((g) => one[g] ?? "NULL").join(", ") || chosen;
    const sizes = new Map();
    for (const one of all) sizes.set(label(one), (sizes.get(label(one)) ?? 0) + 1);
    const names = [...sizes].sort((a, b) => b[1] - a[1] || String(a[0]).localeCompare(b[0])).slice(0, LINES).map(([name]) => name).sort();
    const xs = [...new Set(all.map(instants))].filter(Number.isFinite).sort((a, b) => a - b);
    const place = new Map(xs.map((x, at) => [x, at]));
    const lines = names.map(() => xs.map(() => null));
    const early = names.map(() => xs.map(() => null));
    for (const one of all) {
      const at = names.indexOf(label(one));
      if (at < 0 || typeof one[chosen] !== "number") continue;
      lines[at][place.get(instants(one))] = one[chosen];
      if (one.kind === "early") early[at][place.get(instants(one))] = one[chosen];
    }
    chart.show([xs, ...lines, ...early], { names, unitless: last.unitless });
    key.replaceChildren(...names.flatMap((name, at) => [h("span", { class: `key line${at}` }), ` ${name} `]),
      sizes.size > LINES ? `and ${count(sizes.size - LINES)} groups more in the table. ` : "", "Circles are early.");
  }

  return { update, leave: () => { chart.leave(); curve.leave(); } };
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

function groupsOf(text, names) {
  if (!text.trim()) return {};
  const at = text.indexOf("=");
  if (at < 0 && names.length !== 1) throw new Error(`write NAME=VALUE; the groups are ${names.join(", ") || "none"}`);
  return at < 0 ? { [names[0]]: text.trim() } : { [text.slice(0, at).trim()]: text.slice(at + 1).trim() };
}

function valueOptions({ names, unitless }, colour) {
  const x = (at) => steps(at, (value) => (unitless ? count(value) : time(value * 1e6)));
  return {
    scales: { x: { time: false } },
    axes: [{ values: (_, at) => x(at) }, { values: (_, at) => steps(at, number) }],
    series: [{},
      ...names.map((_, at) => ({ stroke: colour(`line${at}`), width: 1.75, spanGaps: true, points: { show: false } })),
      ...names.map((_, at) => ({ stroke: colour(`line${at}`), width: 0, points: { show: true, size: 8, fill: colour("card") } }))],
  };
}

function curveOptions({ values }, colour) {
  return {
    scales: { x: { time: false, range: [0, 1] } },
    axes: [{ values: (_, at) => steps(at, (value) => `${Math.round(100 * value)} %`) }, { values: (_, at) => steps(at, percent) }],
    series: [{}, ...values.map((_, at) => ({ stroke: colour(`line${at}`), width: 2, spanGaps: true, points: { show: true, size: 5, fill: colour(`line${at}`) } }))],
  };
}

function openWindows({ open, count: all, noun, unitless, ended }) {
  if (!open.length) return h("p", {}, ended ? "Every window is closed." : "No window is open: every row that has come is in a final result.");
  return [h("p", { class: "note" }, `${plural(all, `open ${noun === "rows" ? "window" : noun}`)}; times in the sentences are UTC.`),
    h("ul", { class: "windows" }, open.map((one) => h("li", {},
      h("strong", {}, span(one.start, one.end, unitless)),
      h("span", { class: "note" }, one.closes_at === null ? " closes with a row" : ` closes at ${instant(one.closes_at, unitless && Math.abs(one.closes_at) < 1e14)}`),
      h("p", { class: "why" }, one.words))))];
}

function rowsTable({ columns, rows, total, unitless, groups, stopped }) {
  if (!rows.length) return h("p", {}, stopped ? "A record holds no results: they are where the script put them (INTO)." : "No result has come since this console was opened.");
  const shown = columns.filter((one) => one.role === "value");
  const names = shown.length ? shown : Object.keys(rows[0]).filter((name) => !["query", "kind", "window_start", "window_end", "round", "rows", "point", "completeness", "asked"].includes(name) && !/_(error|estimate)$/.test(name)).map((name) => ({ name }));
  const cell = (row, column) => {
    const value = row[column.name];
    if (value === null || value === undefined) return "NULL";
    const off = row[`${column.name}_error`];
    const text = column.time ? instant(Date.parse(value) * 1000, false) : number(value);
    const guess = row.kind === "early" ? row[`${column.name}_estimate`] : null;
    return text + (typeof off === "number" ? ` ± ${percent(off)}` : "") + (typeof guess === "number" ? `, ~${number(Math.round(guess))}` : "");
  };
  const at = (value) => (unitless ? Number(value) : Date.parse(value) * 1000);
  return [h("p", { class: "note" }, `The newest ${rows.length} of ${plural(total, "result")} since this console was opened.`),
    table("Newest results", [{ name: "Window" }, { name: "Kind" }, ...names.map((one) => ({ name: one.name, number: one.number }))],
      rows.map((row) => h("tr", { class: row.kind },
        h("td", {}, span(at(row.window_start), at(row.window_end), unitless)),
        h("td", {}, h("span", { class: `badge ${row.kind}` }, row.kind), typeof row.completeness === "number" ? ` ${percent(row.completeness)}` : ""),
        names.map((one) => h(groups.includes(one.name) ? "th" : "td", { class: one.number ? "number" : null, scope: groups.includes(one.name) ? "row" : null }, cell(row, one))))))];
}

function accuracyWords(accuracy) {
  if (!accuracy || !accuracy.windows) return [];
  return h("p", {}, `Early answers of ${plural(accuracy.windows, "window")} were off by ${percent(accuracy.error)} on average, lately by ${percent(accuracy.recent)}, at worst by ${percent(accuracy.worst)}`,
    accuracy.gain === null ? "." : `; they came ${amount(accuracy.gain, false)} before the final ones.`);
}
