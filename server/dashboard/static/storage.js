// What is on the disk: files of relations, and the snapshots of the lake.

import { h } from "./dom.js";
import { ago, bytes, count, duration, secondsSince } from "./format.js";
import { bar, empty, link, section, table } from "./parts.js";
import { hrefOfRelation } from "./tables.js";

// A table of many small files is slow to read; compaction merges them.
const SMALL = 1 << 20, MANY = 20;

export function storagePage(data) {
  const total = (name) => data.files.reduce((sum, one) => sum + one[name], 0);
  const last = data.snapshots[0];
  const items = [
    ["Data files", count(total("data_files")), bytes(total("data_bytes"))],
    ["Delete files", count(total("delete_files")), `${bytes(total("delete_bytes"))}, of deleted rows`],
    ["Snapshots", last ? count(last.kept) : "–", last ? `back to ${ago(last.oldest_at)}` : ""],
    ["The past is kept for", span(data.retention_ms), "after a change"],
    ["Free on disk", data.disk ? bytes(data.disk.free) : "–", data.disk ? `of ${bytes(data.disk.total)}` : ""],
  ];
  return [
    h("dl", { class: "figures" }, items.map(([name, value, note]) => h("div", { key: name, class: "card" }, h("dt", null, name), h("dd", null, value), h("dd", { class: "note" }, note)))),
    section("Files of relations", files(data)),
    section("Newest snapshots", snapshots(data)),
  ];
}

function files(data) {
  const stored = data.files.filter((one) => one.relation_type !== "sink");
  if (stored.length === 0) return empty("Nothing is stored yet", "Tables and views are Parquet files in a lake.");
  const rowsOf = new Map(data.sizes.map((size) => [size.id, size.total_key_count]));
  const most = Math.max(...stored.map((one) => one.data_bytes + one.delete_bytes), 1);
  const columns = [["Relation", "name"], ["Bytes", "number"], ["", "wide"], ["Rows", "number"], ["Files", "number"], ["Smallest to largest", "number"], ["Deletes", "number"]];
  const rows = [...stored].sort((one, other) => other.data_bytes - one.data_bytes || one.relation_id - other.relation_id).map((one) => ({
    key: one.relation_id,
    cells: [
      [link(hrefOfRelation(one.relation_id, one.relation_type), `${one.schema_name}.${one.relation_name}`), h("small", { class: "muted" }, one.relation_type)],
      bytes(one.data_bytes + one.delete_bytes),
      bar((one.data_bytes + one.delete_bytes) / most, "RUNNING", `Share of ${one.relation_name}`),
      rowsOf.has(one.relation_id) ? count(rowsOf.get(one.relation_id)) : "–",
      [count(one.data_files), one.data_files > MANY && one.data_bytes / one.data_files < SMALL ? h("small", { class: "stuck" }, "many small files") : null],
      one.data_files ? (one.smallest_bytes === one.largest_bytes ? bytes(one.largest_bytes) : `${bytes(one.smallest_bytes)} – ${bytes(one.largest_bytes)}`) : "–",
      one.delete_files ? `${count(one.delete_files)}, ${bytes(one.delete_bytes)}` : "–",
    ],
  }));
  return [
    h("p", { class: "muted" }, "Without the states of operators. Rows of small changes are in the lake's catalog until they are enough for a file."),
    table("Files of relations", columns, rows),
  ];
}

const span = (ms) => (ms % 60000 ? duration(ms / 1000) : ms < 6e6 ? `${ms / 60000} min` : duration(ms / 1000));

function snapshots(data) {
  const columns = [["Snapshot", ""], ["Made", "number"], ["Tables changed", "number"]];
  const rows = data.snapshots.map((one) => ({ key: one.snapshot_id, cells: [one.snapshot_id, secondsSince(one.created_at) < 1 ? "now" : ago(one.created_at), count(one.changed_tables)] }));
  return table("Newest snapshots", columns, rows);
}
