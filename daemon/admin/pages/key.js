// The page of a key: the state of each limit, and what an operator can do.

import { get, post } from "./api.js";
import { confirm, empty, facts, field, h, setText } from "./dom.js";
import { clock, duration, number, percent } from "./format.js";
import { keyLink, policyLink } from "./links.js";
import { howToTrack, KeyHistory, KeyList } from "./usage.js";

const SPANS = [["", "until it is unblocked"], ["10m", "10 minutes"], ["1h", "1 hour"], ["24h", "1 day"]];

// How much of something is used.
export function gauge(name, used, all, text) {
  const share = all === 0 ? 0 : Math.min(1, used / all);
  const bar = h("span", { class: "gauge-bar" });
  bar.style.width = `${share * 100}%`;
  const meter = h("div", {
    class: `gauge${share >= 1 ? " full" : ""}`,
    role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": all, "aria-valuenow": Math.min(used, all),
    "aria-valuetext": text,
  }, bar);
  return h("div", { class: "gauge-row" }, h("div", { class: "gauge-head" }, h("span", {}, name),
    h("span", { class: "number" }, text)), meter);
}

// A form that leads to the page of a key of the policy that `select` or `policy` names.
export function keyForm(select, policy = null) {
  const key = h("input", { name: "key", required: true, autocomplete: "off", spellcheck: "false", placeholder: "user:42" });
  return h("form", {
    class: "row",
    onsubmit: (event) => {
      event.preventDefault();
      location.hash = keyLink(policy ?? select.value, key.value);
    },
  }, policy === null ? field("Policy", select) : null, field("Key", key),
  h("button", { type: "submit", class: "primary" }, "Show the key"));
}

// A choice of the configured policies.
export function policySelect(app, chosen = null) {
  const names = app.overview.policies.filter((policy) => policy.limits.length > 0).map((policy) => policy.name);
  return h("select", { name: "policy" }, names.map((name) =>
    h("option", { value: name, selected: name === chosen }, name)));
}

export function keys(app) {
  const [form, tracked] = [h("div"), h("section", { class: "card", "aria-labelledby": "tracked" })];
  let list = null;
  const element = h("div", {}, h("h1", {}, "Keys"),
    h("section", { class: "card", "aria-labelledby": "find" },
      h("h2", { id: "find" }, "Find a key"),
      h("p", { class: "note" }, "A key is what a policy limits: a user, an address, an API key."),
      form),
    tracked);
  let isShown = false;

  function show() {
    // The tracked policy that denies most is the likeliest reason to be here.
    const by = (policy) => (policy.tracked ? 1 + policy.totals.denied : 0);
    const worst = app.overview.policies.reduce((worst, policy) => (by(policy) > by(worst) ? policy : worst), app.overview.policies[0]);
    const select = policySelect(app, worst?.name);
    const choose = () => {
      const isTracked = app.overview.policies.some((policy) => policy.name === select.value && policy.tracked);
      list = isTracked ? new KeyList(app, select.value) : null;
      list?.load();
      tracked.replaceChildren(h("h2", { id: "tracked" }, `Keys of ${select.value}`), list?.element ?? howToTrack(select.value));
    };
    select.addEventListener("change", choose);
    form.replaceChildren(keyForm(select));
    choose();
  }

  return {
    title: "Keys",
    element,
    update() {
      if (app.overview.policies.length === 0) {
        element.replaceChildren(h("h1", {}, "Keys"), empty("No policies", "Keys are counted under policies."));
      } else if (!isShown) {
        show();
        isShown = true;
      } else {
        list?.refresh();
      }
    },
  };
}

export function key(app, policy, name) {
  const verdict = h("p", { class: "verdict" }, "Loading…");
  const limits = h("div", { class: "gauges" });
  const more = h("div");
  const actions = h("div", { class: "actions" });
  const result = h("p", { class: "result", role: "status", "aria-live": "polite" });
  const updated = h("small", { class: "note" });
  const history = new KeyHistory();
  const parts = [verdict,
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-labelledby": "limits" },
        h("div", { class: "card-head" }, h("h2", { id: "limits" }, "Limits"), updated), limits, more),
      h("section", { class: "card", "aria-labelledby": "actions" },
        h("h2", { id: "actions" }, "Actions"), actions, result)),
    history.element];
  const state = h("div", { class: "stack" }, parts);
  const element = h("div", {},
    h("p", { class: "path" }, h("a", { href: "#/keys" }, "Keys"), " / ",
      h("a", { href: policyLink(policy) }, policy)),
    h("h1", { class: "key-name" }, name), state);
  let shown = null;

  async function load() {
    try {
      const query = new URLSearchParams({ policy, key: name });
      const [inspection, peek] = await Promise.all([get(`api/key?${query}`), post("api/peek", { policy, key: name })]);
      if (!verdict.isConnected) {
        state.replaceChildren(...parts);
      }
      showVerdict(verdict, peek);
      limits.replaceChildren(...inspection.limits.map(limitGauge));
      more.replaceChildren(...details(inspection));
      setText(updated, `as of ${clock(inspection.time)}`);
      history.update(inspection);
      showActions(inspection.block !== null, Boolean(inspection.ban?.banned_for));
    } catch (error) {
      if (error.status !== 0) {
        state.replaceChildren(empty("This key cannot be shown", error.message));
      }
    }
  }

  function showActions(isBlocked, isBanned) {
    const rights = `${isBlocked} ${isBanned} ${app.session.operate}`;
    if (shown === rights) {
      return;
    }
    shown = rights;
    if (!app.session.operate) {
      actions.replaceChildren(h("p", { class: "note" },
        `Reset and block are for operators. ${sentence(app.session.reason)}`));
      return;
    }
    actions.replaceChildren(
      h("button", { type: "button", onclick: reset }, "Reset…"),
      h("button", { type: "button", onclick: blockKey }, isBlocked ? "Change the block…" : "Block…"),
      isBlocked || isBanned ? h("button", { type: "button", onclick: unblock }, "Unblock…") : "");
  }

  async function act(operation, body, done) {
    const focused = document.activeElement?.textContent;
    try {
      const outcome = await post(`api/${operation}`, { policy, key: name, ...body });
      setText(result, outcome.changed ? done : "Nothing to change.");
    } catch (error) {
      setText(result, `Not done: ${error.message}`);
    }
    await load();
    const buttons = [...actions.querySelectorAll("button")];
    (buttons.find((button) => button.textContent === focused) ?? buttons[0])?.focus();
  }

  async function reset() {
    const text = "Its counters, leases and reservations are deleted, so that every limit is unused. A block stays.";
    if (await confirm(`Reset ${name}?`, text, "Reset the key") !== null) {
      await act("reset", {}, "The key was reset.");
    }
  }

  async function blockKey() {
    const select = h("select", { name: "for" }, SPANS.map(([value, text]) => h("option", { value }, text)));
    const text = `Every request of this key under ${policy} is denied.`;
    const form = await confirm(`Block ${name}?`, text, "Block the key", [field("For how long", select)]);
    if (form !== null) {
      const span = form.get("for");
      await act("block", span === "" ? {} : { for: span }, "The key is blocked.");
    }
  }

  async function unblock() {
    if (await confirm(`Unblock ${name}?`, "Its limits apply again.", "Unblock the key") !== null) {
      await act("unblock", {}, "The key is unblocked.");
    }
  }

  return { title: name, element, update: load, redraw: () => history.redraw(), close: () => history.close() };
}

function limitGauge(limit) {
  const rest = limit.used === 0 ? "unused" : `unused again in ${duration(limit.reset_after)}`;
  const row = gauge(limit.limit, limit.used, limit.capacity,
    `${number(limit.used)} of ${number(limit.capacity)} used`);
  row.append(h("small", { class: "note" }, `${number(limit.remaining)} left, ${rest}`));
  return row;
}

function details(inspection) {
  const leases = inspection.limits.flatMap((limit) => limit.leases);
  const parts = [];
  if (leases.length > 0) {
    parts.push(["Leases held", `${number(leases.length)}; the next expires in ${duration(leases[0].ends_after)}`]);
  }
  if (inspection.reservations.length > 0) {
    parts.push(["Reservations", `${number(inspection.reservations.length)}; `
      + `the next acts in ${duration(inspection.reservations[0].acts_after)}`]);
  }
  if (inspection.held) {
    parts.push(["Held by this daemon",
      `${number(inspection.held.remaining)}, charged in advance, for up to ${duration(inspection.held.ends_after)}`]);
  }
  if (inspection.block !== null) {
    const end = inspection.block.ends_after;
    parts.push(["Block", end === null ? "until it is unblocked" : `for another ${duration(end)}`]);
  }
  const ban = inspection.ban;
  if (ban?.banned_for) {
    parts.push(["Ban", `for another ${duration(ban.banned_for)}`]);
  } else if (ban?.denials > 0) {
    parts.push(["Denials", `${number(ban.denials)} of ${number(ban.max_denials)} until a ban`]);
  }
  return parts.length === 0 ? [] : [facts(parts)];
}

// What a request would get.
export function showVerdict(element, decision) {
  element.dataset.allowed = decision.allowed;
  const share = `${number(decision.remaining)} of ${number(decision.capacity)} left (${percent(decision.remaining, decision.capacity)})`;
  let text;
  if (decision.allowed) {
    text = `The next request is allowed: ${share}`;
  } else if (decision.never) {
    text = "The request is denied always: its cost exceeds the capacity";
  } else if (decision.reason === "limit") {
    text = `The next request is denied; it fits in ${duration(decision.retry_after)}`;
  } else {
    const wait = decision.retry_after === null ? "" : `, for ${duration(decision.retry_after)}`;
    text = `The next request is denied: ${REASONS[decision.reason] ?? decision.reason}${wait}`;
  }
  setText(element, text);
}

const REASONS = {
  blocked: "the key is blocked", banned: "the key is banned", deny_list: "the key is on the deny list",
  store: "the store is unavailable",
};

export const sentence = (text) => (text === null ? "" : `${text[0].toUpperCase()}${text.slice(1)}.`);
