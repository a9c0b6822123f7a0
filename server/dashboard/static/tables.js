// Tables, sources and plain views: how large they are, and the first of their rows.

import { h } from "./dom.js";
import { bytes, count, duration, secondsSince } from "./format.js";
import { chip, code, empty, filtered, link, listing, section, table } from "./parts.js";

export const hrefOfRelation = (id, kind) => (kind === "table" || kind === "source" || kind === "view" ? `#/tables/${id}` : `#/views/${id}`);

export function tablesPage(data, app) {
  if (data.relations.length === 0) return empty("There are no tables yet", "Create one: ", code("CREATE TABLE orders (id int PRIMARY KEY, amount numeric)"), ", or a source with ", code("CREATE SOURCE"), ".");
  const sizes = new Map(data.sizes.map((size) => [size.id, size]));
  const sources = new Map(data.sources.map((source) => [source.source_id, source]));
  const files = new Map(data.files.map((one) => [one.relation_id, one]));
  const columns = [["Name", "name"], ["Kind", ""], ["Filled by", ""], ["Rows", "number"], ["Bytes", "number"], ["Files", "number"]];
  return filtered("tables", app, data.relations, (one) => `${one.schema_name}.${one.name} ${one.relation_type}`, (list) =>
    table(
      "Tables, sources and views",
      columns,
      list.map((one) => {
        const size = sizes.get(one.id), source = sources.get(one.id), stored = files.get(one.id);
        return {
          key: one.id,
          cells: [
            link(`#/tables/${one.id}`, `${one.schema_name}.${one.name}`),
            one.relation_type,
            source ? [sourceState(source), source.reason ? h("small", { class: "stuck" }, source.reason) : null] : one.relation_type === "view" ? "its query" : "statements",
            size && one.relation_type !== "view" ? count(size.total_key_count) : "–",
            stored ? bytes(stored.data_bytes + stored.delete_bytes) : "–",
            stored ? count(stored.data_files) : "–",
          ],
        };
      }),
    ),
  );
}

const sourceState = (source) => [chip(source.state), " ", h("span", { class: "muted" }, source.connector)];

export function tablePage(data, app) {
  const id = Number(app.route.id), size = data.sizes[0], source = data.sources[0], stored = data.files[0];
  return [
    h(
      "div",
      { class: "card job" },
      h("span", { class: "tags" }, h("span", { class: "tag" }, data.kind), h("span", { class: "muted" }, `owned by ${data.owner}`)),
      data.kind === "view"
        ? h("p", { class: "reason" }, "A plain view: its query runs whenever it is read.")
        : h("dl", { class: "facts" }, [
            ["Rows", size ? count(size.total_key_count) : "–"],
            ["Bytes in files", stored ? bytes(stored.data_bytes + stored.delete_bytes) : "–"],
            ["Files", stored ? count(stored.data_files) : "–"],
            ["Delete files", stored ? count(stored.delete_files) : "–"],
          ].map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value)))),
      source ? h("p", { class: "reason" }, sourceState(source), `: ${count(source.rows_consumed)} rows of ${source.splits === 1 ? "one split" : `${source.splits} splits`}`, source.reason ? h("span", { class: "stuck" }, `. ${source.reason}, for ${duration(secondsSince(source.reason_since))}`) : null) : null,
    ),
    section("Rows", previewOf(app, id)),
    section("Columns", columnsOf(data)),
    section("Reads and readers", neighbours(data, id)),
    section("Statement", listing("The statement that made it", data.definition)),
  ];
}

export const columnsOf = (data) =>
  table("Columns", [["Column", "name"], ["Type", ""], ["", ""]], data.columns.map((column) => ({ key: column.name, cells: [column.name, column.type, column.is_key ? h("span", { class: "tag" }, "key") : null] })));

/** The first rows of a relation, read when the page is opened and when somebody asks again. */
export function previewOf(app, id) {
  const found = app.once("preview", id);
  if (found === null) return h("p", { class: "muted" }, "Reading…");
  const problem = found.problem ?? found.preview_error;
  if (problem) return h("p", { class: "muted" }, `Not shown: ${problem}`);
  const again = h("button", { type: "button", class: "quiet", onclick: () => app.again("preview", id) }, "Read again");
  if (found.preview.length === 0) return h("p", { class: "muted" }, "There are no rows. ", again);
  const columns = found.preview_columns.map((name) => [name, "value"]);
  const rows = found.preview.map((row, place) => ({ key: place, cells: row.map((value) => (value === null ? h("span", { class: "null" }, "NULL") : value)) }));
  return [
    table("The first rows", columns, rows, "preview"),
    h("p", { class: "muted" }, `${found.preview.length === 1 ? "One row" : `The first ${found.preview.length} rows`}, in no order. `, again),
  ];
}

/** What a relation reads, and what reads it, as links. */
export function neighbours(data, id) {
  const names = new Map(data.relations.map((one) => [one.id, one]));
  const list = (title, ids) =>
    h(
      "div",
      { key: title },
      h("dt", null, title),
      h("dd", null, ids.length === 0 ? "nothing" : h("ul", null, ids.map((each) => h("li", { key: each }, link(hrefOfRelation(each, names.get(each).relation_type), `${names.get(each).schema_name}.${names.get(each).name}`), h("span", { class: "muted" }, ` ${names.get(each).relation_type}`))))),
    );
  const known = (ids) => ids.filter((each) => names.has(each));
  return h(
    "dl",
    { class: "card neighbours" },
    list("Reads", known(data.lineage.filter((edge) => edge.to_id === id).map((edge) => edge.from_id))),
    list("Is read by", known(data.lineage.filter((edge) => edge.from_id === id).map((edge) => edge.to_id))),
  );
}
