// The views, indexes and sinks: as of when each shows what was committed, and how one is kept so.

import { h } from "./dom.js";
import { bytes, clock, count, duration } from "./format.js";
import { planOf } from "./jobs.js";
import { chip, code, empty, listing, section, table } from "./parts.js";

// A view that is behind for longer than some barriers is worth a look.
const LATE_MS = 10000;

export function viewsPage(data) {
  if (data.views.length === 0) {
    return empty("There are no views yet", "Create one over a table: ", code("CREATE MATERIALIZED VIEW … AS SELECT …"), ". It then follows every INSERT, UPDATE and DELETE.");
  }
  const sizes = new Map(data.sizes.map((size) => [size.id, size]));
  const columns = [["Name", ""], ["Kind", ""], ["State", ""], ["Shows all up to", ""], ["Proof", ""], ["Rows", "number"], ["Files", "number"]];
  const proofs = new Map(data.proofs.map((proof) => [proof.relation_id, proof]));
  const rows = data.views.map((view) => {
    const size = sizes.get(view.job_id);
    return {
      key: view.job_id,
      cells: [
        h("a", { href: view.state === "CREATING" ? `#/jobs/${view.job_id}` : `#/views/${view.job_id}` }, `${view.schema_name}.${view.job_name}`),
        view.job_type,
        stateOf(view),
        freshness(view),
        proofOf(proofs.get(view.job_id)),
        size && view.state !== "CREATING" ? count(size.total_key_count) : "–",
        size && view.state !== "CREATING" ? bytes(size.total_value_size) : "–",
      ],
    };
  });
  return table("Views, indexes and sinks", columns, rows);
}

function stateOf(view) {
  const isLate = view.state === "FOLLOWING" && view.lag_ms > LATE_MS;
  return [chip(isLate ? "BEHIND" : view.state, isLate ? "behind" : view.state), view.reason ? h("small", { class: "stuck" }, view.reason) : null];
}

// What the last comparison with the query found.
function proofOf(proof) {
  if (!proof || !proof.result) return "–";
  const age = (Date.now() - Date.parse(proof.audited_at)) / 1000;
  const ago = age < 60 ? "just now" : `${duration(age)} ago`;
  if (proof.result === "PROVEN") return `proven ${ago}`;
  if (proof.result === "DIFFERENT") return chip(`DIFFERENT ${ago}`, "failed");
  return `not compared ${ago}`;
}

function triesOf(view) {
  if (!view.reason) return null;
  const since = view.reason_since ? ` Behind since ${clock(view.reason_since)}` : " Behind";
  return view.tries ? `${since}; tried ${view.tries} times, next at ${clock(view.next_try_at)}.` : `${since}.`;
}

function freshness(view) {
  if (view.state === "CREATING") return h("a", { href: `#/jobs/${view.job_id}` }, "see its job");
  if (view.fresh_as_of === null) return "–";
  return view.lag_ms < 2000 ? "now" : `${duration(view.lag_ms / 1000)} ago`;
}

export function viewPage(data) {
  const view = data.views[0];
  return [
    h(
      "div",
      { class: "card job" },
      h("span", { class: "tags" }, view ? stateOf(view) : null, h("span", { class: "tag" }, data.kind), h("span", { class: "muted" }, `owned by ${data.owner}`)),
      view ? h("p", { class: "reason" }, "Shows all that was committed up to ", h("strong", null, freshness(view)), ".", triesOf(view)) : null,
      data.proofs.length ? h("p", { class: "reason" }, "Compared with its query: ", proofOf(data.proofs[0]), ".") : null,
    ),
    section("Statement", listing("The statement that made it", data.definition)),
    section("How it follows its inputs", deltas(data)),
    section("Plan", planOf(data, [])),
    section(
      "Columns",
      table("Columns", [["Column", ""], ["Type", ""]], data.columns.map((column) => ({ key: column.name, cells: [column.name, column.type] }))),
    ),
  ];
}

function deltas(data) {
  if (!data.incremental) return h("p", { class: "muted" }, `Not shown: ${data.incremental_error}`);
  return [
    h("p", { class: "muted" }, "What EXPLAIN (INCREMENTAL) says: for each operator its rule, and the SQL of its change between two snapshots."),
    listing("The SQL of its changes", data.incremental),
  ];
}
