// The page of a policy.

import { get } from "./api.js";
import { Chart } from "./chart.js";
import { empty, facts, h, setText, Table } from "./dom.js";
import { number, rate, tick, words } from "./format.js";
import { keyForm } from "./key.js";
import { chartData, DECISIONS } from "./overview.js";
import { KeyList } from "./usage.js";

const ON_STORE_ERROR = {
  local: "each process decides with its share of the limits",
  allow: "requests are allowed",
  deny: "requests are denied",
};

export function policy(app, name) {
  const content = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  const element = h("div", {}, h("p", { class: "path" }, h("a", { href: "#/" }, "Overview"), " / policy"),
    h("h1", {}, name), content);
  const chart = new Chart("Decisions per second", DECISIONS, rate, tick);
  const summary = h("p", { class: "summary" });
  const surfaces = new Table("Decisions since the start, by interface", [
    { name: "Interface", text: (row) => words(row.surface) },
    ...DECISIONS.filter((line) => line.of !== "degraded").map((line) =>
      ({ name: line.name, number: true, text: (row) => number(row[line.of]) })),
  ]);
  const none = empty("No requests yet", "Decisions of this policy appear here within a second.");
  let [isShown, keys] = [false, null];

  function show(details) {
    if (app.overview.policies.some((policy) => policy.name === name && policy.tracked)) {
      keys = new KeyList(app, name);
      keys.load();
    }
    const limits = details.limits.map((limit) => h("li", {}, h("code", {}, limit)));
    const mode = details.shadow ? "shadow: denials are counted, and requests pass" : "denies";
    content.replaceChildren(
      summary,
      h("div", { class: "columns" },
        h("section", { class: "card", "aria-label": "Decisions" }, chart.element),
        h("div", { class: "stack" }, h("section", { class: "card", "aria-labelledby": "limits" },
          h("h2", { id: "limits" }, "Limits"),
          details.configured ? h("ul", { class: "limits" }, limits)
            : h("p", {}, "These counters belong to several policies that have no counters of their own."),
          details.configured ? facts([
            ["Mode", mode],
            ["Without the store", ON_STORE_ERROR[details.on_store_error]],
            details.variants > 0 ? ["Overrides and tiers", number(details.variants)] : null,
          ]) : ""),
        details.configured ? h("section", { class: "card", "aria-labelledby": "find" },
          h("h2", { id: "find" }, "Find a key"), keyForm(null, name)) : "")),
      keys === null ? "" : h("section", { class: "card", "aria-labelledby": "tracked" },
        h("h2", { id: "tracked" }, "Keys"), keys.element),
      h("section", { class: "card", "aria-labelledby": "interfaces" },
        h("h2", { id: "interfaces" }, "By interface"), surfaces.element, none));
    isShown = true;
  }

  async function load() {
    try {
      const details = await get(`api/policies/${encodeURIComponent(name)}`);
      if (!isShown) {
        show(details);
      } else {
        keys?.refresh();
      }
      setText(summary, `${rate(details.rates.allowed)} allowed and ${rate(details.rates.denied)} denied a second; `
        + `${number(details.totals.allowed)} allowed and ${number(details.totals.denied)} denied since the start`);
      chart.update(chartData(details.history, DECISIONS));
      surfaces.update(details.surfaces, (row) => row.surface);
      surfaces.element.hidden = details.surfaces.length === 0;
      none.hidden = details.surfaces.length > 0;
    } catch (error) {
      if (error.status !== 0) {
        isShown = false;
        content.replaceChildren(empty("This policy cannot be shown", error.message));
      }
    }
  }

  return {
    title: name,
    element,
    update: load,
    redraw: () => chart.redraw(),
    close: () => chart.close(),
  };
}
