// Who looks at it: the users of the wire, with their passwords.

import { h } from "./dom.js";
import { logIn } from "./api.js";
import { code } from "./parts.js";

let problem = null;
let busy = false;

export function loginPage(app) {
  if (!app.session.has_passwords) {
    return h(
      "main",
      { id: "main", class: "login" },
      h("h1", { tabindex: "-1" }, "Not from here"),
      h("p", null, "As long as no user has a password, the dashboard is for this machine only, as ", code("http://127.0.0.1"), " or ", code("http://localhost"), ", without a proxy."),
      h("p", null, "To let others in: ", code("ALTER USER root PASSWORD '…'"), "."),
    );
  }
  return h(
    "main",
    { id: "main", class: "login" },
    h("h1", { tabindex: "-1" }, "Sparkwave"),
    h(
      "form",
      { class: "card", onsubmit: (event) => submit(event, app) },
      h("label", { for: "user" }, "User"),
      h("input", { id: "user", name: "user", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" }),
      h("label", { for: "password" }, "Password"),
      h("input", { id: "password", name: "password", type: "password", autocomplete: "current-password" }),
      h("p", { class: "problem", role: "alert" }, problem),
      h("button", { class: "main", disabled: busy }, busy ? "Logging in…" : "Log in"),
    ),
    h("p", { class: "muted" }, "The same users and passwords as in psql."),
  );
}

async function submit(event, app) {
  event.preventDefault();
  const given = new FormData(event.target);
  busy = true;
  problem = null;
  app.draw();
  try {
    app.session = await logIn(given.get("user"), given.get("password"));
  } catch (error) {
    problem = [error.message, error.hint].filter(Boolean).join(" ");
  }
  busy = false;
  app.draw();
  if (app.session.user) app.refresh();
}
