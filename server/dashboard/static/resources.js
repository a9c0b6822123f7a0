// Where work runs, and what an administrator may say of it.

import { h } from "./dom.js";
import { act } from "./api.js";
import { cores } from "./format.js";
import { code, section, table } from "./parts.js";

const NUMBERS = [
  ["serverless_backfill_replicas", "Nodes of a group", "1", "1000", "Each backfill gets a group of so many nodes."],
  ["serverless_backfill_provision_timeout", "Seconds for a group to come", "1", "86400", "After them the job fails, and says why."],
  ["serverless_backfill_linger", "Seconds a group stays after its last job", "0", "86400", "For the next backfill of its size, which then starts at once."],
  ["serverless_backfill_warm_groups", "Groups kept ready", "0", "100", "A backfill takes one and starts at once; another is started."],
];

export function resourcesPage(data, app) {
  const values = new Map(data.parameters.map((parameter) => [parameter.name, parameter.value]));
  return [backfilling(values, data, app), groups(data)];
}

function backfilling(values, data, app) {
  const name = "serverless_backfill_enabled";
  const isOn = values.get(name) === "true";
  const locked = !data.may_change;
  return section(
    "Backfilling",
    h(
      "form",
      { class: "card form", onsubmit: (event) => event.preventDefault() },
      h(
        "div",
        { class: "field" },
        h("label", { for: name }, "Serverless backfill"),
        h("input", {
          id: name, type: "checkbox", role: "switch", checked: isOn, disabled: locked, "aria-describedby": `${name}_help`,
          onchange: (event) => set(app, name, String(event.target.checked), event.target, isOn),
        }),
        h("p", { id: `${name}_help` }, "New views are filled on a Spark application of their own, which goes when they are done: ", code("WITH (cloud.serverless_backfill_enabled = true)"), " or ", code("SET enable_serverless_backfill = true"), "."),
      ),
      h(
        "div",
        { class: "field" },
        h("label", { for: "serverless_backfill_sku" }, "Size of a node (SKU)"),
        h(
          "select",
          {
            id: "serverless_backfill_sku", disabled: locked, "aria-describedby": "sku_help",
            onchange: (event) => set(app, "serverless_backfill_sku", event.target.value, event.target),
          },
          data.skus.map((sku) => h("option", { key: sku.name, value: sku.name, selected: sku.name === values.get("serverless_backfill_sku") }, `${sku.name}: ${cores(sku.cores)}, ${sku.memory_mib / 1024} GiB`)),
        ),
        h("p", { id: "sku_help" }, "The configuration file can add sizes."),
      ),
      NUMBERS.map(([id, label, min, max, help]) =>
        h(
          "div",
          { class: "field", key: id },
          h("label", { for: id }, label),
          h("input", {
            id, type: "number", min, max, step: "1", inputmode: "numeric", value: values.get(id), disabled: locked, "aria-describedby": `${id}_help`,
            onchange: (event) => set(app, id, event.target.value, event.target),
          }),
          h("p", { id: `${id}_help` }, help),
        ),
      ),
      h("p", { class: "note" }, locked ? "Only a superuser can change these." : ["Each change takes effect at once, as ", code("ALTER SYSTEM SET"), " does, for views that are created from then on."]),
    ),
  );
}

async function set(app, name, value, field, wasOn) {
  try {
    const now = await act("parameter", { name, value });
    app.say(`${now.name} is ${now.value} now.`);
  } catch (error) {
    if (field.type === "checkbox") field.checked = wasOn;
    app.complain(error);
  }
  app.refresh();
}

function groups(data) {
  const columns = [["Resource group", ""], ["Nodes", "number"], ["Cores", "number"], ["Jobs", "number"], ["Databases", "number"]];
  const rows = data.groups.map((group) => ({ key: group.name, cells: [group.name, group.streaming_workers, group.parallelism, group.streaming_jobs, group.databases] }));
  return section("Resource groups", table("Resource groups", columns, rows));
}
