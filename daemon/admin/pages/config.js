// The effective configuration and the last reload.

import { get } from "./api.js";
import { empty, facts, h } from "./dom.js";
import { moment, number } from "./format.js";

// A line of YAML. Those that are set somewhere end with their origin, and stand out.
function line(text) {
  const [value, origin] = text.split("  # ");
  if (origin !== undefined) {
    return h("span", {}, value, h("span", { class: "origin" }, `  # ${origin}`), "\n");
  }
  return h("span", { class: text.endsWith(":") ? null : "default" }, `${text}\n`);
}

export function config() {
  const content = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const element = h("div", {}, h("h1", {}, "Configuration"), content);
  let shown = null;

  async function load(overview) {
    const { last, active_since: since } = overview.configuration;
    const version = `${overview.started} ${last} ${since}`;
    if (version === shown) {
      return;
    }
    try {
      const details = await get("api/config");
      shown = version;
      show(details);
    } catch (error) {
      if (error.status !== 0) {
        shown = version;
        content.replaceChildren(empty("The configuration cannot be shown", error.message));
      }
    }
  }

  function show(details) {
    const badge = h("span", { class: "badge", "data-state": details.accepted ? "good" : "bad" },
      details.accepted ? "Active" : "Last reload rejected");
    const parts = [h("section", { class: "card", "aria-labelledby": "reload" },
      h("div", { class: "card-head" }, h("h2", { id: "reload" }, "Status"), badge),
      details.accepted ? "" : h("p", {}, "The previous configuration stays active. Correct the file; the daemon reads it again."),
      details.error === null ? "" : h("pre", { class: "problem", tabindex: "0" }, details.error),
      ...details.warnings.map((warning) => h("p", { class: "warning" }, warning)),
      facts([
        ["Last reload", details.last === null ? "none since the start" : moment(details.last)],
        ["Active since", moment(details.active_since)],
        ["Reloads", `${number(details.reloads)}, ${number(details.rejected)} rejected`],
      ]))];
    if (details.yaml !== null) {
      parts.push(h("section", { class: "card", "aria-labelledby": "effective" },
        h("h2", { id: "effective" }, "Effective configuration"),
        h("p", { class: "note" }, "From file, environment and flags, with the origin of each value; secrets are masked."),
        h("pre", { class: "yaml", tabindex: "0", role: "group", "aria-label": "YAML" },
          details.yaml.split("\n").map(line))));
    }
    content.replaceChildren(...parts);
  }

  return { title: "Configuration", element, update: load };
}
