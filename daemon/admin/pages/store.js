// The store: how full memory is, or the health of each node.

import { facts, h, Table } from "./dom.js";
import { bytes, duration, latency, number, words } from "./format.js";
import { gauge } from "./key.js";

const STATUS = { reachable: "Reachable", lost: "Unavailable", never_reached: "Not reached yet" };

export class StorePanel {
  constructor() {
    this.status = h("span", { class: "badge" });
    this.content = h("div", { class: "stack" });
    this.element = h("section", { class: "card", "aria-labelledby": "store" },
      h("div", { class: "card-head" }, h("h2", { id: "store" }, "Store"), this.status), this.content);
    this.nodes = new Table("Nodes of the store", [
      { name: "Node", text: (node) => node.address, value: (node) => node.address },
      { name: "State", text: (node) => (node.up ? "up" : `down: ${node.failure ?? "not connected"}`), marked: (node) => !node.up },
      { name: "Breaker", text: (node) => breaker(node), marked: (node) => node.breaker !== "closed" },
      { name: "Connections", number: true, text: (node) => number(node.connections), value: (node) => node.connections },
      { name: "In flight", number: true, text: (node) => number(node.in_flight), value: (node) => node.in_flight },
      { name: "Queued", number: true, text: (node) => number(node.queued), value: (node) => node.queued },
      { name: "Outages", number: true, text: (node) => number(node.outages), value: (node) => node.outages },
    ], { column: "Node", isDescending: false });
  }

  update(store) {
    this.status.textContent = STATUS[store.status] ?? words(store.status);
    this.status.dataset.state = store.status === "reachable" ? "good" : "bad";
    const content = store.kind === "memory" ? this.memory(store) : this.redis(store);
    this.content.replaceChildren(...content);
  }

  memory(store) {
    return [
      h("div", { class: "gauges" },
        gauge("Keys", store.keys, store.max_keys, `${number(store.keys)} of ${number(store.max_keys)}`),
        gauge("Memory", store.bytes, store.max_bytes, `${bytes(store.bytes)} of ${bytes(store.max_bytes)}`)),
      facts([
        ["Kind", "memory of this process"],
        ["Keys evicted", number(store.evicted)],
        ["Keys refused, table full", number(store.refused)],
      ]),
    ];
  }

  redis(store) {
    this.nodes.update(store.nodes, (node) => node.address);
    const down = store.nodes.filter((node) => !node.up).length;
    return [
      facts([
        ["Kind", "Redis or Valkey"],
        ["Nodes", `${store.nodes.length}${down === 0 ? "" : `, ${down} down`}`],
        ["Latency", `p50 ${latency(store.latency.p50)}, p99 ${latency(store.latency.p99)}`],
        ["Processes that share the limits", store.members === null ? "unknown yet" : number(store.members)],
        ["Keys decided without the store", number(store.pending_keys)],
      ]),
      this.nodes.element,
    ];
  }
}

function breaker(node) {
  if (node.breaker === "closed") {
    return node.breaker_opened === 0 ? "closed" : `closed, opened ${number(node.breaker_opened)}×`;
  }
  const cause = node.breaker_cause === null ? "" : `: ${node.breaker_cause}`;
  const outage = node.last_outage === null ? "" : `, for ${duration(node.last_outage)}`;
  return `${words(node.breaker)}${cause}${outage}`;
}
