// What has happened, the newest first: what matters in the open, the rest folded.

import { h } from "./dom.js";
import { clock, count, day, words } from "./format.js";
import { empty, link, search, wantedOf } from "./parts.js";
import { hrefOfRelation } from "./tables.js";

// What an event means to who reads it. The others are noise: folded unless somebody looks for them.
const BAD = /FAIL|CLEAR|DIFFERENT|SLOW/, GOOD = /RECOVER$|RECOVERY_SUCCESS/, PLAIN = /CANCEL_STREAM_JOB|PLAN_CHANGED/;

export function eventsPage(data, app) {
  const all = [...data.events.map(ofServer), ...data.created.map(ofCreation), ...data.audits.filter((audit) => audit.result !== "DIFFERENT").map(ofAudit)].sort((one, other) => other.at - one.at);
  if (all.length === 0) return empty("Nothing has happened yet", "What is created, what fails and recovers, audits, and resource groups that come and go are noted here.");
  const wanted = wantedOf("events").toLowerCase();
  const found = wanted ? all.filter((event) => `${event.what} ${event.search}`.toLowerCase().includes(wanted)) : all;
  const shown = wanted ? found.map((event) => [event]) : folded(found);
  return [
    search("events", app, "Filter, e.g. fail or a name", "Show only events with"),
    found.length === 0 ? h("p", { class: "muted" }, `None of the last ${all.length} events has “${wantedOf("events")}”.`) : null,
    h("ol", { class: "events" }, shown.map((group, place) => line(group, shown[place - 1]))),
  ];
}

const ofServer = (event) => ({
  key: event.unique_id,
  at: Date.parse(event.timestamp),
  tone: BAD.test(event.event_type) ? "bad" : GOOD.test(event.event_type) ? "good" : PLAIN.test(event.event_type) ? "plain" : "noise",
  what: words(event.event_type),
  search: event.info,
  info: infoOf(event.info),
});

const ofCreation = (one) => ({
  key: `created ${one.id}`,
  at: Date.parse(one.created_at),
  tone: "good",
  what: "Created",
  search: `${one.kind} ${one.name}`,
  info: h("span", { class: "pair" }, h("b", null, one.kind), " ", link(hrefOfRelation(one.id, one.kind), one.name)),
});

const ofAudit = (audit) => ({
  key: `audit ${audit.relation_id} ${audit.started_at}`,
  at: Date.parse(audit.started_at),
  tone: "noise",
  what: audit.result === "PROVEN" ? "View proven" : "View not compared",
  search: audit.relation_name,
  info: link(`#/views/${audit.relation_id}`, `${audit.schema_name}.${audit.relation_name}`),
});

/** Neighbouring events of no weight as one group, within a day. */
function folded(events) {
  const groups = [];
  for (const event of events) {
    const last = groups.at(-1);
    if (last && event.tone === "noise" && last[0].tone === "noise" && day(last[0].at) === day(event.at)) last.push(event);
    else groups.push([event]);
  }
  return groups;
}

function line(group, before) {
  const date = day(group[0].at);
  return h(
    "li",
    { key: group[0].tone === "noise" ? `noise ${group.at(-1).key}` : group[0].key },
    before && day(before[0].at) === date ? null : h("h2", { class: "date" }, date),
    group.length === 1 ? entry(group[0]) : fold(group),
  );
}

const entry = (event) =>
  h(
    "div",
    { key: event.key, class: `event ${event.tone}` },
    h("time", { datetime: new Date(event.at).toISOString() }, clock(event.at)),
    h("span", { class: "what" }, event.what),
    h("span", { class: "info" }, event.info),
  );

function fold(group) {
  const tally = new Map();
  for (const event of group) tally.set(event.what, (tally.get(event.what) ?? 0) + 1);
  const said = [...tally].map(([what, number]) => `${number} × ${what.charAt(0).toLowerCase()}${what.slice(1)}`).join(", ");
  return h(
    "details",
    { class: "fold" },
    h("summary", { class: "event noise" }, h("time", { datetime: new Date(group[0].at).toISOString() }, clock(group[0].at)), h("span", { class: "what" }, `${count(group.length)} minor events`), h("span", { class: "info" }, said)),
    h("div", null, group.map(entry)),
  );
}

function infoOf(text) {
  try {
    return Object.entries(JSON.parse(text)).map(([name, value]) => h("span", { key: name, class: "pair" }, h("b", null, name.replaceAll("_", " ")), ` ${typeof value === "object" ? JSON.stringify(value) : value}`));
  } catch {
    return text;
  }
}
