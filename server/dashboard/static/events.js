// What has happened, the newest first.

import { h } from "./dom.js";
import { clock, day, words } from "./format.js";
import { empty } from "./parts.js";

let wanted = "";

export function eventsPage(data, app) {
  if (data.events.length === 0) return empty("Nothing has happened yet", "Jobs that fail, resource groups that come and go and recoveries are noted here.");
  const shown = data.events.filter((event) => `${event.event_type} ${event.info}`.toLowerCase().includes(wanted.toLowerCase()));
  return [
    h(
      "label",
      { class: "filter" },
      h("span", { class: "unseen" }, "Show only events with"),
      h("input", {
        type: "search", placeholder: "Filter, e.g. backfill or fail", value: wanted,
        oninput: (event) => { wanted = event.target.value; app.draw(); },
      }),
    ),
    shown.length === 0 ? h("p", { class: "muted" }, `None of the last ${data.events.length} events has “${wanted}”.`) : null,
    h("ol", { class: "events" }, shown.map((event, place) => line(event, shown[place - 1]))),
  ];
}

function line(event, before) {
  const date = day(event.timestamp);
  const bad = /FAIL|CLEAR/.test(event.event_type);
  return h(
    "li",
    { key: event.unique_id },
    before && day(before.timestamp) === date ? null : h("h2", { class: "date" }, date),
    h(
      "div",
      { class: "event" },
      h("time", { datetime: event.timestamp }, clock(event.timestamp)),
      h("span", { class: bad ? "what bad" : "what" }, words(event.event_type)),
      h("span", { class: "info" }, infoOf(event.info)),
    ),
  );
}

function infoOf(text) {
  try {
    return Object.entries(JSON.parse(text)).map(([name, value]) => h("span", { key: name, class: "pair" }, h("b", null, name.replaceAll("_", " ")), ` ${typeof value === "object" ? JSON.stringify(value) : value}`));
  } catch {
    return text;
  }
}
