// What a backfill would take: the quote of a statement, and of a job that runs.

import { h } from "./dom.js";
import { act } from "./api.js";
import { ago, bytes, compact, count, duration } from "./format.js";
import { empty, section, table } from "./parts.js";

let typed = "", answer = null, isAsking = false;

/** A field for a statement, and its quote. Nothing is created. */
export function quoteForm(app) {
  return section(
    "What would it take?",
    h(
      "form",
      { class: "card quote", onsubmit: (event) => ask(event, app) },
      h("label", { for: "quoted" }, "A CREATE MATERIALIZED VIEW, INDEX or SINK"),
      h("textarea", {
        id: "quoted", rows: 4, spellcheck: "false", autocapitalize: "none", "aria-describedby": "quoted_help",
        placeholder: "CREATE MATERIALIZED VIEW spending AS\nSELECT customer, sum(amount) AS total FROM orders GROUP BY customer", value: typed,
        oninput: (event) => { typed = event.target.value; },
      }),
      h("div", { class: "under" }, h("p", { id: "quoted_help", class: "muted" }, "EXPLAIN (BACKFILL, COST): nothing is created."), h("button", { class: "main", disabled: isAsking }, isAsking ? "Asking…" : "Quote")),
    ),
    answer && quoteOf(answer),
  );
}

async function ask(event, app) {
  event.preventDefault();
  isAsking = true;
  app.draw();
  try {
    answer = await act("quote", { sql: typed.trim().replace(/;$/, "") }, app.database);
  } catch (error) {
    answer = { quote_error: error.message, quote_hint: error.hint };
  }
  isAsking = false;
  app.draw();
}

/** The quote of a page's answer, or why there is none. */
function quoteOf(found) {
  const problem = found.problem ?? found.quote_error;
  if (problem) return h("p", { class: "problem", role: "alert" }, problem, found.quote_hint ? ` ${found.quote_hint}` : "");
  const { read, write, engines, strategy } = found.quote;
  const reads = read.map((each) => `${each.relation} (${count(each.rows)} rows, ${bytes(each.bytes)}${each.skipped_files ? `; ${count(each.skipped_rows)} rows skipped` : ""})`);
  const columns = [["Engine", ""], ["Time", "number"], ["10 % to 90 %", "number"], ["Cost", "number"], ["Cores", "number"], ["Slices", "number"], ["Memory", "number"]];
  const shown = engines.filter((each, place) => each.taken || each.engine !== "serverless" || !isLike(each, engines[place - 1]));
  const rows = shown.map((each) => ({
    key: each.name,
    kind: each.taken ? "taken" : null,
    cells: [
      [each.engine === "serverless" ? `serverless ${each.name}` : each.name, each.taken ? h("span", { class: "tag" }, "would be taken") : null, each.taken && !each.is_corrected ? h("small", { class: "muted" }, "the model's own time: fewer than five such backfills are measured") : null],
      seconds(each.seconds.p50),
      `${seconds(each.seconds.p10)} – ${seconds(each.seconds.p90)}`,
      each.cost ? money(each.cost.p50) : "–",
      count(each.cores),
      count(each.slices),
      bytes(each.memory_bytes),
    ],
  }));
  return [
    h("p", { class: "muted" }, `Reads ${reads.join(", ")}; writes about ${compact(write.rows)} rows, ${bytes(write.bytes)} (${strategy}).`),
    table("Quote", columns, rows),
    shown.length < engines.length ? h("p", { class: "muted" }, `Without ${engines.length - shown.length} sizes of nodes that take as long as the one before them.`) : null,
  ];
}

/** Whether a larger size of nodes takes as long as the one before it, and costs no less. */
const isLike = (one, before) => before?.engine === one.engine && Math.abs(one.seconds.p50 - before.seconds.p50) < 0.02 * before.seconds.p50 && (one.cost?.p50 ?? 0) >= (before.cost?.p50 ?? 0);

export const seconds = (number) => (number < 10 ? `${number.toFixed(2)} s` : duration(number));
const money = (amount) => Number(amount).toPrecision(2);

/** The quote of a creating job, asked for once. */
export function jobQuote(app, id) {
  const found = app.once("quote", id);
  return found === null ? h("p", { class: "muted" }, "Asking…") : quoteOf(found);
}

/** How long finished backfills took, in a table. */
export function measuredBackfills(list, price) {
  if (list.length === 0) return empty("None is measured yet", "Backfills over ten thousand rows or more are measured when they are done.");
  const columns = [["View", "name"], ["Engine", ""], ["Rows read", "number"], ["Took", "number"], ["Rows/s", "number"], ["Cost", "number"], ["Ended", "number"]];
  const rows = list.map((each) => ({
    key: `${each.job_id} ${each.finished_at}`,
    cells: [
      h("a", { href: `#/views/${each.job_id}` }, `${each.schema_name}.${each.job_name}`),
      `${each.engine}, ${each.cores === 1 ? "1 core" : `${each.cores} cores`}`,
      count(each.row_count),
      [seconds(each.seconds), each.start_seconds ? h("small", { class: "muted" }, `and ${seconds(each.start_seconds)} for the group`) : null],
      compact(each.row_count / Math.max(each.seconds, 0.001)),
      costOf(each, price),
      ago(each.finished_at),
    ],
  }));
  return table("Measured backfills", columns, rows);
}

/** Only groups of their own cost something. */
export const costOf = (each, price) => (price > 0 && each.engine === "serverless" ? money((each.cores * price * (each.seconds + each.start_seconds)) / 3600) : "–");
