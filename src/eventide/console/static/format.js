// How numbers, times and lengths are read. Instants are microseconds since 1970; times are shown in the viewer's zone.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));
export const number = (value) => (typeof value === "number" ? precise.format(value) : String(value ?? "–"));
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

export function percent(share) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  return `${parseFloat(value < 0.1 ? value.toPrecision(2) : value < 10 ? value.toFixed(2) : value.toFixed(0))} %`;
}

export function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; size >= 1024 && at < units.length - 1; at += 1) size /= 1024;
  return `${at === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[at]}`;
}

export function seconds(length) {
  if (length === null || length === undefined) return "–";
  const sign = length < 0 ? "−" : "";
  const value = Math.abs(length);
  if (value < 0.001) return value === 0 ? "0 s" : `${sign}${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${sign}${Math.round(value * 1000)} ms`;
  if (value < 60) return `${sign}${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const total = Math.round(value);
  if (total < 3600) return `${sign}${Math.floor(total / 60)} min ${total % 60} s`;
  if (total < 86400) return `${sign}${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
  return `${sign}${Math.floor(total / 86400)} d ${Math.floor((total % 86400) / 3600)} h`;
}

export const amount = (micros, unitless) =>
  micros === null || micros === undefined ? "–" : unitless ? count(micros) : seconds(micros / 1e6);

export function instant(micros, unitless, withDay) {
  if (micros === null || micros === undefined) return "–";
  if (unitless) return count(micros);
  const at = new Date(micros / 1000);
  if (Number.isNaN(at.getTime())) return count(micros);
  const today = day.format(at) === day.format(new Date());
  return today && !withDay ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
}

export const time = (micros) => clock.format(new Date(micros / 1000));
export const hour = (micros) => minutes.format(new Date(micros / 1000));

// A window, with its day said once.
export function span(start, end, unitless) {
  if (unitless) return `${count(start)} to ${count(end)}`;
  const short = (micros) => (micros % 60e6 === 0 ? hour(micros) : time(micros));
  return `${short(start)} to ${short(end)}`;
}
