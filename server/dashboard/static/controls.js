// What one may do with a job that is being created: pause, resume, slow down, cancel.

import { h } from "./dom.js";
import { act } from "./api.js";
import { count } from "./format.js";

/** Buttons; `withLimit` adds a field for the rows a second. */
export function jobControls(job, app, withLimit = false) {
  const isPaused = job.limit === 0;
  return h(
    "div",
    { class: "controls" },
    withLimit ? limitForm(job, app) : null,
    h("button", { type: "button", class: "quiet", "aria-label": `${isPaused ? "Resume" : "Pause"} ${job.name}`, onclick: () => setLimit(job, app, isPaused ? null : 0) }, isPaused ? "Resume" : "Pause"),
    h("button", { type: "button", class: "quiet danger", "aria-label": `Cancel ${job.name}`, onclick: () => askToCancel(job, app) }, "Cancel"),
  );
}

function limitForm(job, app) {
  return h(
    "form",
    { class: "limit", onsubmit: (event) => submit(event, job, app) },
    h("label", { for: "limit" }, "At most"),
    h("input", { id: "limit", name: "rows", type: "number", min: "1", max: "2147483647", step: "1", inputmode: "numeric", placeholder: "any", value: job.limit > 0 ? String(job.limit) : "", "aria-describedby": "limit_unit" }),
    h("span", { id: "limit_unit", class: "muted" }, "rows/s"),
    h("button", { class: "quiet" }, "Set"),
  );
}

function submit(event, job, app) {
  event.preventDefault();
  const text = new FormData(event.target).get("rows").trim();
  setLimit(job, app, text === "" ? null : Number(text));
}

async function setLimit(job, app, rows) {
  try {
    await act("limit", { id: job.id, rows });
    app.say(rows === 0 ? `${job.name} is paused.` : rows === null ? `${job.name} reads as fast as it can.` : `${job.name} reads at most ${count(rows)} rows a second.`);
  } catch (error) {
    app.complain(error);
  }
  app.refresh();
}

function askToCancel(job, app) {
  app.confirm({
    title: `Cancel ${job.name}?`,
    text: "What it has read is thrown away, and its name is free again. Other jobs go on.",
    yes: "Cancel the job",
    no: "Let it run",
    then: async () => {
      const done = await act("cancel", { id: job.id });
      app.say(done.cancelled.length ? `${job.name} is cancelled.` : `${job.name} was finished already.`);
    },
  });
}
