// The views, indexes and sinks: up to when each shows what was committed, and how one is kept so.

import { h } from "./dom.js";
import { act } from "./api.js";
import { timeChart } from "./chart.js";
import { ago, bytes, clock, count, milliseconds, rate } from "./format.js";
import { measuredCost, planOf } from "./jobs.js";
import { chip, code, empty, filtered, link, listing, section, table } from "./parts.js";
import { costOf } from "./quotes.js";
import { columnsOf, neighbours, previewOf } from "./tables.js";
import { LATE_MS } from "./troubles.js";

export const hrefOf = (view) => (view.state === "CREATING" ? `#/jobs/${view.job_id}` : `#/views/${view.job_id}`);

export function viewsPage(data, app) {
  if (data.views.length === 0) {
    return empty("There are no views yet", "Create one over a table: ", code("CREATE MATERIALIZED VIEW … AS SELECT …"), ". It then follows every INSERT, UPDATE and DELETE.");
  }
  const sizes = new Map(data.sizes.map((size) => [size.id, size]));
  const columns = [["Name", "name"], ["Kind", ""], ["State", ""], ["Lag", "number"], ["Rows/s", "number"], ["Proof", ""], ["Rows", "number"], ["Bytes", "number"]];
  const proofs = new Map(data.proofs.map((proof) => [proof.relation_id, proof]));
  return filtered("views", app, data.views, (view) => `${view.schema_name}.${view.job_name} ${view.job_type} ${view.state}`, (list) =>
    table(
      "Views, indexes and sinks",
      columns,
      list.map((view) => {
        const size = sizes.get(view.job_id), isStored = size && view.state !== "CREATING" && view.job_type !== "sink";
        return {
          key: view.job_id,
          cells: [
            link(hrefOf(view), `${view.schema_name}.${view.job_name}`),
            view.job_type,
            stateOf(view),
            freshness(view),
            view.changed_rows_per_second === null || view.state === "CREATING" ? "–" : rate(view.changed_rows_per_second),
            proofOf(proofs.get(view.job_id)),
            isStored ? count(size.total_key_count) : "–",
            isStored ? bytes(size.total_value_size) : "–",
          ],
        };
      }),
    ),
  );
}

export function stateOf(view) {
  const isLate = view.state === "FOLLOWING" && view.lag_ms > LATE_MS;
  return [chip(isLate ? "BEHIND" : view.state, isLate ? "behind" : view.state), view.reason ? h("small", { class: "stuck" }, view.reason) : null];
}

/** What the last comparison with the query found, and at which epoch. */
export function proofOf(proof) {
  if (!proof || !proof.result) return h("span", { class: "muted" }, proof ? "not yet" : "–");
  const when = ago(proof.audited_at).replace(/^now$/, "just now");
  const where = proof.audited_snapshot === null ? null : h("small", { class: "muted" }, `at epoch ${proof.audited_snapshot}`);
  if (proof.result === "PROVEN") return [h("span", { class: "proven" }, `proven ${when}`), where];
  if (proof.result === "DIFFERENT") return [chip("FAILED", `different, ${when}`), where];
  return h("span", { class: "muted" }, `not compared, ${when}`);
}

function costWords(data) {
  const cost = costOf(data.measured[0], Number(data.price[0]?.value ?? 0));
  return cost === "–" ? "" : `, which cost ${cost}`;
}

function triesOf(view) {
  if (!view.reason) return null;
  const since = view.reason_since ? ` Behind since ${clock(view.reason_since)}` : " Behind";
  return view.tries ? `${since}; tried ${view.tries} times, next at ${clock(view.next_try_at)}.` : `${since}.`;
}

export function freshness(view) {
  if (view.state === "CREATING") return "–";
  return view.lag_ms === null ? "–" : milliseconds(view.lag_ms);
}

export function viewPage(data, app) {
  const view = data.views[0], id = Number(app.route.id);
  return [
    h(
      "div",
      { class: "card job" },
      h("span", { class: "tags" }, view ? stateOf(view) : null, h("span", { class: "tag" }, data.kind), h("span", { class: "muted" }, `owned by ${data.owner}`)),
      view && view.lag_ms !== null
        ? h("p", { class: "reason" }, "Shows all that was committed up to ", h("strong", null, milliseconds(view.lag_ms)), " ago.", triesOf(view))
        : null,
      data.errors.length ? h("p", { class: "reason stuck" }, `${count(data.errors[0].errors)} rows have NULL for an expression that failed. ${data.errors[0].last_error ?? ""}`) : null,
      data.measured.length ? h("p", { class: "reason" }, "Its backfill ", measuredCost(data.measured[0]), costWords(data), ".") : null,
    ),
    data.history.length ? section("The last hour", curves(data.history[0])) : null,
    data.proofs.length ? section("Proof", proof(data, id, app)) : null,
    data.kind === "materialized view" ? section("Rows", previewOf(app, id)) : null,
    section("Reads and readers", neighbours(data, id)),
    section("Statement", listing("The statement that made it", data.definition)),
    section("Plan", planOf(data, [])),
    section("How it follows its inputs", deltas(data)),
    section("Columns", columnsOf(data)),
  ];
}

/** A job's curves of rw_job_history. */
function pointsOf(history, name) {
  const until = Date.parse(history.until) / 1000, values = history[name];
  return values.map((value, place) => [until - (values.length - 1 - place) * history.interval_seconds, value]);
}

function curves(history) {
  return h(
    "div",
    { class: "charts" },
    timeChart("Lag", "ms", pointsOf(history, "lag_ms"), milliseconds, "Largest lag"),
    timeChart("Rows changed", "rows/s", pointsOf(history, "changed_rows_per_second"), rate, "Rows changed a second"),
  );
}

let isComparing = false;

async function compare(id, app) {
  isComparing = true;
  app.draw();
  try {
    const done = await act("audit", { id });
    app.say({ PROVEN: "It has the rows of its query.", DIFFERENT: "It has other rows than its query." }[done.result] ?? "It was not compared: see the detail.", done.result === "DIFFERENT");
  } catch (error) {
    app.complain(error);
  }
  isComparing = false;
  app.refresh();
}

function proof(data, id, app) {
  const known = data.proofs[0];
  const said = h(
    "div",
    { class: "bar-of-tools" },
    h("p", { class: "muted" }, known.checksum ? ["Checksum of its rows: ", code(known.checksum), ` of ${count(known.row_count)} rows.`] : "Its checksum is read at the first audit.", data.audits.length ? "" : " Not compared with its query yet."),
    data.may_audit ? h("button", { type: "button", disabled: isComparing, onclick: () => compare(id, app) }, isComparing ? "Comparing…" : "Compare now") : null,
  );
  if (data.audits.length === 0) return said;
  const columns = [["Compared", ""], ["Result", ""], ["At epoch", "number"], ["Checksum", ""], ["Rows", "number"], ["Took", "number"], ["Detail", "statement"]];
  const rows = data.audits.map((audit) => ({
    key: audit.started_at,
    cells: [
      ago(audit.started_at),
      chip({ PROVEN: "FOLLOWING", DIFFERENT: "FAILED" }[audit.result] ?? "WAITING", audit.result),
      audit.snapshot,
      audit.checksum ? code(audit.checksum) : "–",
      audit.row_count === null ? "–" : count(audit.row_count),
      `${audit.seconds.toFixed(2)} s`,
      audit.detail ?? "–",
    ],
  }));
  return [said, table("Comparisons with the query", columns, rows)];
}

function deltas(data) {
  if (!data.incremental) return h("p", { class: "muted" }, `Not shown: ${data.incremental_error}`);
  return [
    h("p", { class: "muted" }, "What EXPLAIN (INCREMENTAL) says: for each operator its rule, and the SQL of its change between two snapshots."),
    listing("The SQL of its changes", data.incremental),
  ];
}
