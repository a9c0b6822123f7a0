// Who is connected, what runs, and what took long.

import { h } from "./dom.js";
import { act } from "./api.js";
import { timeChart } from "./chart.js";
import { ago, duration, milliseconds, rate, secondsSince } from "./format.js";
import { chip, empty, section, statement, table } from "./parts.js";

export function sessionsPage(data, app) {
  return [
    data.sessions.length === 0
      ? empty("Nobody is connected", "Clients of the Postgres protocol show here with what they run. The dashboard itself does not.")
      : section("Connected", sessions(data.sessions, app)),
    section("Slow statements", slow(data.slow)),
    data.history.length < 2 ? null : section("The last hour", charts(data.history)),
  ];
}

function sessions(list, app) {
  const columns = [["Session", ""], ["State", ""], ["For", "number"], ["Statement", "statement"], ["", "act"]];
  const rows = [...list].sort((one, other) => (other.state === "active") - (one.state === "active") || one.pid - other.pid).map((one) => ({
    key: one.pid,
    cells: [
      [h("b", null, one.usename), h("small", { class: "muted" }, [one.datname, one.application_name, one.client_addr, `pid ${one.pid}`].filter(Boolean).join(" · "))],
      one.state ? chip(one.state === "active" ? "RUNNING" : "WAITING", one.state) : "–",
      one.state_change ? duration(secondsSince(one.state_change)) : "–",
      statement(one.query),
      one.state === "active" ? h("button", { type: "button", class: "quiet danger", "aria-label": `Cancel the statement of session ${one.pid}`, onclick: () => ask(one, app) }, "Cancel") : null,
    ],
  }));
  return table("Sessions", columns, rows);
}

function ask(one, app) {
  app.confirm({
    title: `Cancel the statement of ${one.usename}?`,
    text: one.query.length > 300 ? `${one.query.slice(0, 299)}…` : one.query,
    yes: "Cancel the statement",
    no: "Let it run",
    then: async () => {
      const done = await act("end", { pid: one.pid });
      app.say(done.is_done ? "The statement is cancelled." : "The session has ended meanwhile.");
    },
  });
}

function slow(list) {
  if (list.length === 0) return h("p", { class: "muted" }, "No statement has taken a second or more since the server started.");
  const columns = [["Took", "number"], ["Statement", "statement"], ["By", ""], ["Began", "number"]];
  const rows = list.map((one) => ({
    key: `${one.pid} ${one.started_at}`,
    cells: [
      one.seconds < 100 ? `${one.seconds.toFixed(1)} s` : duration(one.seconds),
      statement(one.query),
      [one.usename, h("small", { class: "muted" }, [one.datname, one.application_name].filter(Boolean).join(" · "))],
      ago(one.started_at),
    ],
  }));
  return table("Slow statements", columns, rows);
}

function charts(history) {
  const of = (name) => history.map((moment) => [Date.parse(moment.at) / 1000, moment[name]]);
  return h(
    "div",
    { class: "charts" },
    timeChart("Statements", "a second", of("statements_per_second"), rate, "Statements a second"),
    timeChart("Time of a statement", "ms", of("statement_ms"), milliseconds, "Average time of a statement"),
  );
}
