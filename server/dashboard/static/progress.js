// How far a job is: its fragments taken together.

import { h } from "./dom.js";
import { compact, count, duration, range, secondsSince } from "./format.js";
import { bar, chip, tag, toneOf } from "./parts.js";

// The state of the whole is the first of these that a fragment is in.
const ORDER = ["RETRYING", "RUNNING", "PAUSED", "PROVISIONING", "WAITING", "FINISHING", "CATCHING UP", "FINISHED"];

export function summary(job, fragments) {
  const own = fragments.filter((fragment) => fragment.job_id === job.job_id);
  const known = own.filter((fragment) => fragment.rows_total !== null);
  const done = known.reduce((sum, fragment) => sum + Math.min(fragment.rows_done, fragment.rows_total), 0);
  const total = known.reduce((sum, fragment) => sum + fragment.rows_total, 0);
  const running = own.filter((fragment) => fragment.state === "RUNNING");
  const timed = running.filter((fragment) => fragment.seconds_left_high !== null);
  const stuck = own.find((fragment) => fragment.reason);
  return {
    id: job.job_id,
    name: `${job.schema_name}.${job.job_name}`,
    state: ORDER.find((state) => own.some((fragment) => fragment.state === state)) ?? "WAITING",
    strategy: own[0]?.strategy,
    group: own[0]?.resource_group,
    share: total > 0 ? done / total : known.length > 0 ? 1 : null,
    done,
    total,
    rate: running.reduce((sum, fragment) => sum + (fragment.rows_per_second ?? 0), 0),
    limit: own[0]?.rate_limit ?? null,
    low: timed.length ? Math.max(...timed.map((fragment) => fragment.seconds_left_low ?? 0)) : null,
    high: timed.length ? timed.reduce((sum, fragment) => sum + fragment.seconds_left_high, 0) : null,
    reason: stuck?.reason ?? null,
    since: stuck?.reason_since ?? null,
    started: job.initialized_at,
    isServerless: job.is_serverless_backfill,
    isBackground: job.create_type === "BACKGROUND",
  };
}

/** The facts below a bar. What is not known yet is a dash, so that nothing moves when it comes. */
export function facts(job) {
  const items = [
    ["Rows read", job.share === null ? "–" : `${count(job.done)} of ${count(job.total)}`],
    ["Rows a second", job.rate > 0 ? compact(job.rate) : "–"],
    ["Time left", job.high === null ? "–" : range(job.low, job.high)],
    ["Runs for", job.started ? duration((Date.now() - Date.parse(job.started)) / 1000) : "–"],
  ];
  return h("dl", { class: "facts" }, items.map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))));
}

const percent = (job) => (job.share === null ? "–" : `${(Math.floor(job.share * 1000) / 10).toFixed(1)} %`);

export function meter(job) {
  return h("div", { class: "meter" }, bar(job.share, job.state, `Progress of ${job.name}`), h("span", { class: "percent" }, percent(job)));
}

export function tags(job) {
  return h(
    "span",
    { class: "tags" },
    chip(job.state),
    job.isServerless ? tag("serverless") : null,
    job.strategy ? tag({ SnapshotBackfill: "snapshot backfill", ArrangementBackfill: "arrangement backfill", Backfill: "no-shuffle backfill" }[job.strategy] ?? job.strategy) : null,
    job.group ? tag(`on ${job.group}`) : null,
    job.limit > 0 ? tag(`at most ${compact(job.limit)} rows/s`) : null,
  );
}

/** Why it does not move; else what it does. One line either way. */
export function reason(job) {
  if (job.reason) {
    return h("p", { class: toneOf(job.state) === "busy" ? "reason busy" : "reason stuck" }, h("strong", null, job.reason), job.since ? ` · for ${duration(secondsSince(job.since))}` : null);
  }
  const how = job.strategy === "SnapshotBackfill" ? "reads a snapshot" : "reads its tables on";
  const what = { "CATCHING UP": "applies what has changed meanwhile", FINISHING: "waits for the barrier that makes it visible" };
  return h("p", { class: "reason" }, what[job.state] ?? how, job.isBackground ? ", in the background" : ", while its client waits");
}
