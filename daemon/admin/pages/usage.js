// What a policy tracks about its keys: totals, a timeline and the last notes.

import { get } from "./api.js";
import { Chart } from "./chart.js";
import { empty, facts, h, setText, Table } from "./dom.js";
import { ago, moment, number, tick, when } from "./format.js";
import { keyLink } from "./links.js";

const ORDERS = [["most-denied", "Most denied"], ["most-used", "Busiest"], ["newest", "Latest"], ["oldest", "Idle longest"]];
const MAX_KEYS = 20;
const REFRESH = 2000;
// The bars of a timeline that are drawn.
const MAX_INTERVALS = 720;

// Explains how to enable tracking.
export const howToTrack = (policy) => empty(`${policy} does not track the usage of its keys`,
  "Track the policy to see its busiest and most denied keys here, and the history of each.",
  h("pre", {}, `policies:\n  ${policy}:\n    track: { usage: true, recent: 20, timeline: 24h by 1m }`));

// The keys of a policy, in a chosen order.
export class KeyList {
  constructor(app, policy) {
    this.app = app;
    this.policy = policy;
    this.order = ORDERS[0][0];
    this.buttons = ORDERS.map(([order, name]) => h("button", {
      type: "button", class: "quiet", "aria-pressed": String(order === this.order), onclick: () => this.choose(order),
    }, name));
    this.table = new Table("Keys", [
      { name: "Key", text: (key) => key.key, link: (key) => this.link(key) },
      { name: "Denied", number: true, text: (key) => number(key.denied), marked: (key) => key.denied > 0 },
      { name: "Allowed", number: true, text: (key) => number(key.allowed) },
      { name: "Cost", number: true, minor: true, text: (key) => number(key.cost) },
      { name: "Last seen", number: true, text: (key) => ago(this.app.overview.time - key.last_seen) },
    ]);
    this.note = h("p", { class: "note" });
    this.none = h("div", { hidden: true });
    this.element = h("div", { class: "stack" },
      h("div", { class: "choices", role: "group", "aria-label": "Order" }, this.buttons),
      this.table.element, this.none, this.note);
  }

  // A key that is not shown in full cannot be looked up.
  link(key) {
    return this.app.overview.privacy === "plain" && key.key_base64 === undefined ? keyLink(this.policy, key.key) : null;
  }

  choose(order) {
    this.order = order;
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", ORDERS[index][0] === order));
    this.load();
  }

  // Loads the keys again every few seconds.
  refresh() {
    if (Date.now() - this.loadedAt >= REFRESH) {
      this.load();
    }
  }

  async load() {
    this.loadedAt = Date.now();
    const { policy, order } = this;
    try {
      const query = new URLSearchParams({ policy, order, limit: MAX_KEYS });
      const page = await get(`api/keys?${query}`);
      if (order !== this.order) {
        return;
      }
      this.table.update(page.keys, (key) => key.key);
      this.table.element.hidden = page.keys.length === 0;
      this.none.hidden = page.keys.length > 0;
      this.none.replaceChildren(empty("No keys yet", "A key appears within a second of its first request."));
      setText(this.note, this.app.overview.privacy === "plain" ? ""
        : `privacy is ${this.app.overview.privacy}, so keys are not shown in full; type a key to look it up.`);
    } catch (error) {
      if (error.status !== 0) {
        this.table.element.hidden = true;
        this.none.hidden = false;
        this.none.replaceChildren(empty("The keys cannot be shown", error.message));
      }
    }
  }
}

// What is recorded about one key.
export class KeyHistory {
  constructor() {
    this.totals = h("div");
    this.chart = new Chart("Decisions over time", [
      { name: "Allowed", colour: "accent", fill: true },
      { name: "Denied", colour: "denied", dash: [6, 4] },
    ], number, tick);
    this.notes = new Table("The last requests", [
      { name: "Time", text: (note) => when(note.time) },
      { name: "Answer", text: (note) => note.answer.replaceAll("_", "-"), marked: (note) => note.answer !== "allowed" },
      { name: "Note", text: (note) => note.note ?? "–" },
      { name: "Cost", number: true, minor: true, text: (note) => number(note.cost) },
    ]);
    this.element = h("div", { class: "stack" });
    this.parts = {
      usage: this.card("Usage", h("h2", {}, "Usage"), this.totals),
      timeline: this.card("Timeline", this.chart.element),
      recent: this.card("Recent requests", h("h2", {}, "Recent requests"), this.notes.element),
    };
    this.shown = "";
  }

  card(title, ...content) {
    return h("section", { class: "card", "aria-label": title }, ...content);
  }

  update(inspection) {
    const { usage, recent = [], timeline, time } = inspection;
    const parts = [usage && "usage", timeline?.intervals.length > 0 && "timeline", recent.length > 0 && "recent"].filter(Boolean);
    if (parts.join() !== this.shown) {
      this.shown = parts.join();
      this.element.replaceChildren(...parts.map((part) => this.parts[part]));
    }
    if (usage) {
      this.totals.replaceChildren(facts([
        ["Allowed", number(usage.allowed)], ["Denied", number(usage.denied)], ["Total cost", number(usage.cost)],
        ["First seen", moment(usage.first_seen)], ["Last seen", ago(time - usage.last_seen)],
      ]));
    }
    if (parts.includes("timeline")) {
      this.chart.update(filled(timeline, time));
    }
    this.notes.update(recent.map((note, index) => ({ ...note, index })), (note) => `${note.time} ${note.index}`);
  }

  redraw() {
    this.chart.redraw();
  }

  close() {
    this.chart.close();
  }
}

// The intervals as the data of a chart, with zeros for those without requests.
function filled({ interval, intervals }, now) {
  const last = Math.floor(now / interval);
  const first = Math.max(Math.round(intervals[0].start / interval), last - MAX_INTERVALS);
  const by = new Map(intervals.map((each) => [Math.round(each.start / interval), each]));
  const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return [
    numbers.map((index) => index * interval),
    numbers.map((index) => by.get(index)?.allowed ?? 0),
    numbers.map((index) => by.get(index)?.denied ?? 0),
  ];
}
