// Numbers, durations and times as texts.

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const HOURS = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const minute = new Intl.DateTimeFormat(undefined, HOURS);
const time = new Intl.DateTimeFormat(undefined, { ...HOURS, second: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const number = (value) => whole.format(value);

// Events per second: with a decimal while they are few.
export function rate(value) {
  if (value === 0 || value >= 100) {
    return whole.format(value);
  }
  return value < 0.05 ? "<0.1" : tenths.format(value);
}

// A latency in seconds, in the unit that suits it.
export function latency(seconds) {
  if (seconds === null || seconds === undefined) {
    return "–";
  }
  const micros = seconds * 1e6;
  if (micros < 1000) {
    return `${Math.round(micros)} µs`;
  }
  return micros < 1e6 ? `${Number((micros / 1000).toPrecision(3))} ms` : `${Number(seconds.toPrecision(3))} s`;
}

// A duration in seconds, to two units: `1 h 5 min`.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) {
    return "–";
  }
  if (seconds > 0 && seconds < 1) {
    return `${Math.ceil(seconds * 1000)} ms`;
  }
  if (seconds < 10) {
    return `${Number(seconds.toFixed(1))} s`;
  }
  let rest = Math.round(seconds);
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) {
      parts.push(`${count} ${unit}`);
    } else if (parts.length > 0) {
      break;
    }
  }
  return parts.slice(0, 2).join(" ");
}

// How long ago something was.
export const ago = (seconds) => (seconds < 1.5 ? "now" : `${duration(Math.max(0, seconds))} ago`);

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  while (count >= 1024 && index < units.length - 1) {
    count /= 1024;
    index += 1;
  }
  return `${index === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[index]}`;
}

export const percent = (part, all) => `${all === 0 ? 0 : Math.round((100 * part) / all)} %`;
// A number on an axis.
export const tick = (value) => (Number.isInteger(value) ? whole : tenths).format(value);

export const minutes = (seconds) => minute.format(seconds * 1000);
export const clock = (seconds) => time.format(seconds * 1000);
export const moment = (seconds) => date.format(seconds * 1000);

// A time, with its date unless that is today.
export function when(seconds) {
  const isToday = new Date(seconds * 1000).toDateString() === new Date().toDateString();
  return isToday ? clock(seconds) : moment(seconds);
}

// A name of the API as words.
export const words = (name) => name.replaceAll("_", " ");
