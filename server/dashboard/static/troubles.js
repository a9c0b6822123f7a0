// What is wrong now: each trouble with its state, its words, and where to look further.

import { roughly, secondsSince } from "./format.js";
import { summary } from "./progress.js";

// A view that is behind for longer than some barriers is worth a look.
export const LATE_MS = 10000;
const FULL = 0.9;
const HELD_UP = new Set(["PAUSED", "RETRYING", "WAITING", "PROVISIONING"]);

/** The troubles of an overview's data, the worst first. */
export function troublesOf(data) {
  const names = new Map(data.views.map((view) => [view.job_id, view]));
  return [
    full(data.disk),
    ...data.proofs.filter((proof) => proof.result === "DIFFERENT").map((proof) => different(proof, names.get(proof.relation_id))),
    ...data.views.filter((view) => view.state === "FAILED" || view.state === "BEHIND").map(leftBehind),
    ...data.views.filter((view) => view.state === "FOLLOWING" && view.lag_ms > LATE_MS).map(late),
    ...data.sources.filter((source) => source.state === "RETRYING" || source.state === "PAUSED").map(stopped),
    ...data.views.filter((view) => view.state === "CREATING").map((view) => heldUp(view, data.fragments)),
    ...data.errors.map((each) => notComputed(each, names.get(each.relation_id))),
  ].filter((trouble) => trouble !== null);
}

const nameOf = (view) => (view ? `${view.schema_name}.${view.job_name}` : "A view");
/** A reason as a sentence, with the time since when it holds. */
function sentence(text, since = null) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1), age = since ? roughly(secondsSince(since)) : null;
  if (/[.!?]$/.test(text)) return age ? `${whole} For ${age}.` : whole;
  return age ? `${whole}, for ${age}.` : `${whole}.`;
}

const different = (proof, view) => ({
  key: `different ${proof.relation_id}`, state: "FAILED", label: "different", name: nameOf(view), href: `#/views/${proof.relation_id}`,
  text: "Its last audit found other rows than those of its query.",
});

const leftBehind = (view) => ({
  key: `behind ${view.job_id}`, state: view.state, label: view.state === "FAILED" ? "set apart" : "behind", name: nameOf(view), href: `#/views/${view.job_id}`,
  text: sentence(view.reason ?? "It does not follow", view.reason_since),
});

const late = (view) => ({
  key: `late ${view.job_id}`, state: "BEHIND", label: "late", name: nameOf(view), href: `#/views/${view.job_id}`,
  text: `It shows what was committed ${roughly(view.lag_ms / 1000)} ago; more than ${LATE_MS / 1000} s is late.`,
});

const stopped = (source) => ({
  key: `source ${source.source_id}`, state: source.state, label: source.state, name: source.source_name, href: `#/tables/${source.source_id}`,
  text: sentence(source.reason ?? "Its rate limit is 0", source.reason_since),
});

function heldUp(view, fragments) {
  const job = summary(view, fragments);
  if (!job.reason || !HELD_UP.has(job.state)) return null;
  return {
    key: `job ${view.job_id}`, state: job.state, label: job.state, name: job.name, href: `#/jobs/${view.job_id}`,
    text: sentence(job.reason, job.since),
  };
}

const notComputed = (each, view) => ({
  key: `errors ${each.relation_id}`, state: "BEHIND", label: "NULLs", name: nameOf(view), href: `#/views/${each.relation_id}`,
  text: `${each.errors === 1 ? "One row has" : `${each.errors} rows have`} NULL for an expression that failed${each.last_error ? `: ${each.last_error}` : ""}.`,
});

const full = (disk) =>
  disk && disk.free / disk.total < 1 - FULL
    ? { key: "disk", state: "BEHIND", label: "disk", name: "The disk of the data directory", href: "#/storage", text: `${Math.round((1 - disk.free / disk.total) * 100)} % of it is used.` }
    : null;
