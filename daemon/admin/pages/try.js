// What a request would get, without charging it.

import { post } from "./api.js";
import { empty, field, h, Table } from "./dom.js";
import { duration, number } from "./format.js";
import { policySelect, showVerdict } from "./key.js";
import { keyLink } from "./links.js";

export function tryRequest(app) {
  const key = h("input", { name: "key", required: true, autocomplete: "off", spellcheck: "false", placeholder: "user:42" });
  const cost = h("input", { name: "cost", type: "number", min: "0", value: "1", required: true });
  const tier = h("input", { name: "tier", autocomplete: "off", spellcheck: "false" });
  const result = h("section", { class: "card", "aria-live": "polite" },
    empty("No result yet", "The result appears here."));
  const policy = h("div");
  const form = h("form", {
    class: "card stack",
    onsubmit: (event) => {
      event.preventDefault();
      peek(new FormData(form));
    },
  }, policy, field("Key", key), field("Cost", cost), field("Tier", tier, "Optional; a tier that the policy does not have is ignored."),
  h("button", { type: "submit", class: "primary" }, "What would it get?"));
  const element = h("div", {}, h("h1", {}, "Try a request"),
    h("p", { class: "summary" }, "Shows what a check would return now. Nothing is charged."),
    h("div", { class: "columns even" }, form, result));
  let isShown = false;

  async function peek(values) {
    const body = { policy: values.get("policy"), key: values.get("key"), cost: Number(values.get("cost")) };
    if (values.get("tier") !== "") {
      body.tier = values.get("tier");
    }
    try {
      show(body, await post("api/peek", body));
    } catch (error) {
      result.replaceChildren(empty("No answer", error.message));
    }
  }

  function show(body, decision) {
    const verdict = h("p", { class: "verdict" });
    showVerdict(verdict, decision);
    const table = new Table("The result of each limit", [
      { name: "Limit", text: (limit) => limit.limit },
      { name: "Answer", text: (limit) => (limit.allowed ? "allows" : "denies"), marked: (limit) => !limit.allowed },
      { name: "Left", number: true, text: (limit) => number(limit.remaining) },
      { name: "Capacity", number: true, text: (limit) => number(limit.capacity) },
      { name: "Fits in", number: true, text: (limit) => (limit.allowed ? "now" : duration(limit.retry_after)) },
      { name: "Unused in", number: true, text: (limit) => duration(limit.reset_after) },
    ]);
    table.update(decision.limits, (limit) => limit.limit);
    result.replaceChildren(
      h("h2", {}, "Answer"), verdict,
      decision.hint === undefined ? "" : h("p", { class: "note" }, decision.hint),
      table.element,
      h("p", {}, h("a", { href: keyLink(body.policy, body.key) }, "Show the key")));
  }

  return {
    title: "Try a request",
    element,
    update() {
      if (!isShown) {
        policy.replaceChildren(field("Policy", policySelect(app)));
        isShown = true;
      }
    },
  };
}
