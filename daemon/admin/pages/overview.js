// The overview: rates, latency, policies and the store.

import { Chart } from "./chart.js";
import { empty, h, setText, Table } from "./dom.js";
import { latency, number, rate, tick, words } from "./format.js";
import { policyLink } from "./links.js";
import { StorePanel } from "./store.js";

export const DECISIONS = [
  { name: "Allowed", colour: "accent", fill: true, of: "allowed" },
  { name: "Denied", colour: "denied", dash: [6, 4], of: "denied" },
  { name: "Shadow-denied", colour: "shadow", dash: [2, 3], optional: true, of: "shadow_denied" },
  { name: "Degraded", colour: "degraded", dash: [8, 3, 2, 3], optional: true, of: "degraded" },
  { name: "Errors", colour: "errors", dash: [1, 2], optional: true, of: "errors" },
];

const LATENCIES = [
  { name: "p50", colour: "accent", spansGaps: true, of: "p50" },
  { name: "p99", colour: "quiet", dash: [6, 4], spansGaps: true, of: "p99" },
];

// A series of the API as the data of a chart.
export const chartData = (history, lines) => [history.time, ...lines.map((line) => history[line.of])];

// What the totals below the rates mean.
const TOTALS = {
  allowed: "since the start", denied: "since the start", shadow_denied: "let through", degraded: "without the store",
};

function tile(name) {
  const [value, note] = [h("strong", { class: "number" }, "–"), h("small")];
  return { element: h("li", {}, h("span", {}, name), value, note), value, note };
}

const limits = (policy) => (policy.limits.length > 0 ? policy.limits.join("; ") : words(policy.name).trim());

const NAMES = { _inline: "inline limits", _other: "other policies", "@throttle": "CL.THROTTLE" };

const counted = (name, of) => ({
  name, number: true,
  text: (policy) => rate(policy.rates[of]),
  value: (policy) => policy.rates[of],
  marked: (policy) => of !== "allowed" && policy.rates[of] > 0,
});

export function overview(app) {
  const tiles = {
    allowed: tile("Allowed"), denied: tile("Denied"), shadow_denied: tile("Shadow-denied"),
    degraded: tile("Degraded"), latency: tile("Latency p99"),
  };
  const decisions = new Chart("Decisions per second", DECISIONS, rate, tick);
  const latencies = new Chart("Latency of decisions", LATENCIES, latency);
  const policies = new Table("Policies", [
    { name: "Policy", text: (policy) => policy.name, value: (policy) => policy.name, link: (policy) => policyLink(policy.name) },
    { name: "Limits", minor: true, text: (policy) => NAMES[policy.name] ?? `${limits(policy)}${policy.shadow ? " · shadow" : ""}` },
    counted("Allowed/s", "allowed"),
    counted("Denied/s", "denied"),
    counted("Shadow-denied/s", "shadow_denied"),
    counted("Degraded/s", "degraded"),
    { name: "Denied in total", number: true, text: (policy) => number(policy.totals.denied), value: (policy) => policy.totals.denied },
  ], { column: "Denied/s", isDescending: true });
  const filter = h("input", { type: "search", placeholder: "Filter policies", "aria-label": "Filter policies", oninput: () => show() });
  const surfaces = h("p", { class: "note" });
  const none = h("div", { hidden: true });
  const store = new StorePanel();
  const element = h("div", { class: "overview" },
    h("h1", { class: "hidden" }, "Overview"),
    h("ul", { class: "tiles" }, Object.values(tiles).map((tile) => tile.element)),
    h("div", { class: "charts" },
      h("section", { class: "card", "aria-label": "Decisions" }, decisions.element),
      h("section", { class: "card", "aria-label": "Latency" }, latencies.element, surfaces)),
    h("section", { class: "card", "aria-labelledby": "policies" },
      h("div", { class: "card-head" }, h("h2", { id: "policies" }, "Policies"), filter),
      policies.element, none),
    store.element);

  function show() {
    const overview = app.overview;
    const text = filter.value.trim().toLowerCase();
    const matching = overview.policies.filter((policy) => policy.name.toLowerCase().includes(text));
    policies.update(matching, (policy) => policy.name);
    policies.element.hidden = matching.length === 0;
    none.hidden = matching.length > 0;
    if (!none.hidden) {
      none.replaceChildren(overview.policies.length === 0
        ? empty("No policies", "Add one to the configuration file; the daemon reloads it.",
          h("pre", {}, "policies:\n  api: { limits: [\"10/s burst 20\"] }"))
        : empty(`No policy contains “${filter.value}”.`));
    }
  }

  return {
    title: "Overview",
    element,
    update(overview) {
      for (const of of ["allowed", "denied", "shadow_denied", "degraded"]) {
        setText(tiles[of].value, `${rate(overview.rates[of])}/s`);
        setText(tiles[of].note, `${number(overview.totals[of])} ${TOTALS[of]}`);
        tiles[of].element.classList.toggle("marked", of !== "allowed" && overview.rates[of] > 0);
      }
      const worst = overview.latency.reduce((worst, each) => Math.max(worst, each.p99), -1);
      setText(tiles.latency.value, worst < 0 ? "–" : latency(worst));
      setText(tiles.latency.note, worst < 0 ? "no requests in the last minute" : "over the last minute");
      decisions.update(chartData(app.history, DECISIONS));
      latencies.update(chartData(app.history, LATENCIES));
      // With a single interface, the chart says the same.
      const interfaces = overview.latency.length > 1 ? overview.latency : [];
      setText(surfaces, interfaces.map((each) =>
        `${words(each.surface)}: p50 ${latency(each.p50)}, p99 ${latency(each.p99)}`).join(" · "));
      store.update(overview.store);
      show();
    },
    redraw() {
      decisions.redraw();
      latencies.redraw();
    },
    close() {
      decisions.close();
      latencies.close();
    },
  };
}
