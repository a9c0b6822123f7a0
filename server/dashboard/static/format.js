// Numbers, times and sizes as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const count = (number) => whole.format(number);
export const compact = (number) => short.format(number);

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; number >= 1000 && unit < units.length - 1; unit++) number /= 1024;
  return `${number >= 100 || unit === 0 ? Math.round(number) : number.toPrecision(2)} ${units[unit]}`;
}

export function duration(seconds) {
  const rounded = Math.max(Math.round(seconds), 0);
  if (rounded < 100) return `${rounded} s`;
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  if (rounded < 172800) return `${Math.floor(rounded / 3600)} h ${Math.floor((rounded % 3600) / 60)} min`;
  return `${Math.floor(rounded / 86400)} days`;
}

/** "28–30 s", "15–19 min": as exactly as it is known, and never long. */
export function range(low, high) {
  const [unit, size, digits] = high < 100 ? ["s", 1, 0] : high < 6000 ? ["min", 60, 0] : high < 172800 ? ["h", 3600, 1] : ["days", 86400, 1];
  const [from, to] = [(low / size).toFixed(digits), (high / size).toFixed(digits)];
  return from === to ? `${to} ${unit}` : `${from}–${to} ${unit}`;
}

/** Milliseconds as people say them: "0.4 ms", "120 ms", "2.5 s", "28 min". */
export function milliseconds(number) {
  if (number < 10) return `${Number(number.toFixed(1))} ms`;
  if (number < 1000) return `${Math.round(number)} ms`;
  return number < 10000 ? `${(number / 1000).toFixed(1)} s` : roughly(number / 1000);
}

/** A number a second: "0", "0.3", "1,240", "2.1M". */
export const rate = (number) => (number === 0 ? "0" : number < 10 ? String(Number(number.toFixed(number < 1 ? 2 : 1))) : number < 100000 ? whole.format(Math.round(number)) : short.format(number));

export const cores = (number) => (number === 1 ? "1 core" : `${number} cores`);

export const secondsSince = (text) => (Date.now() - Date.parse(text)) / 1000;

/** A time as roughly as people say it: "12 s", "28 min", "5 h", "3 days". */
export function roughly(seconds) {
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export function ago(text) {
  const seconds = secondsSince(text);
  return seconds < 1 ? "now" : `${roughly(seconds)} ago`;
}

export const clock = (text) => new Date(text).toLocaleTimeString("en-GB");
export const day = (text) => new Date(text).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** SOME_WORDS as "Some words". */
export const words = (text) => {
  const lower = text.replaceAll("_", " ").toLowerCase();
  return lower.charAt(0).toUpperCase() + lower.slice(1);
};
