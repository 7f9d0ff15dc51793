// The frame of the dashboard: pages, the live connection, the token and the theme.

import { follow, get, token } from "./api.js";
import { config } from "./config.js";
import { empty, field, h, setText } from "./dom.js";
import { clock, duration } from "./format.js";
import { key, keys, sentence } from "./key.js";
import { overview } from "./overview.js";
import { policy } from "./policy.js";
import { tryRequest } from "./try.js";

const MAX_SAMPLES = 600;
const THEMES = ["auto", "light", "dark"];
const byId = (id) => document.getElementById(id);

// What the pages share.
const app = { overview: null, history: null, session: { operate: false, reason: null }, isPaused: false };
let page = null;
let lostAt = null;
// Whether the daemon needs a token, or another one.
let isSignedOut = false;

// Chooses the page of the address.
function route() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parameters = new URLSearchParams(query);
  const name = decodeURIComponent(path.replace(/^\/policies\//, ""));
  if (path === "/keys" && parameters.has("policy") && parameters.has("key")) {
    return key(app, parameters.get("policy"), parameters.get("key"));
  }
  switch (path) {
    case "": case "/": case "main": return overview(app);
    case "/keys": return keys(app);
    case "/try": return tryRequest(app);
    case "/config": return config();
    default: return path.startsWith("/policies/") ? policy(app, name) : null;
  }
}

function show(isMove) {
  page?.close?.();
  page = route() ?? { title: "Not found", element: h("div", {}, h("h1", {}, "Not found"),
    empty("There is no such page", h("a", { href: "#/" }, "Overview"))) };
  document.title = `${page.title} · Tollgate`;
  for (const link of document.querySelectorAll("nav a")) {
    const target = link.getAttribute("href");
    const path = location.hash.split("?")[0] || "#/";
    const isCurrent = target === path || (target === "#/" && path.startsWith("#/policies/"));
    if (isCurrent) {
      link.setAttribute("aria-current", "page");
    } else {
      link.removeAttribute("aria-current");
    }
  }
  if (isSignedOut) {
    return;
  }
  if (app.overview === null) {
    byId("main").replaceChildren(h("p", { class: "loading" }, "Connecting to the daemon…"));
  } else {
    byId("main").replaceChildren(page.element);
    page.update?.(app.overview);
  }
  if (isMove) {
    byId("main").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

// Adds samples to those of this tab. After a restart of the daemon, the gap stays visible.
function remember(overview, isFirst) {
  const isSameProcess = app.overview?.started === overview.started;
  if (app.history === null || (isFirst && isSameProcess)) {
    app.history = overview.history;
    return;
  }
  for (const [name, values] of Object.entries(app.history)) {
    if (isFirst) {
      values.push(name === "time" ? (values.at(-1) ?? overview.time) + 0.5 : null);
    }
    values.push(...overview.history[name]);
    values.splice(0, values.length - MAX_SAMPLES);
  }
}

function onEvent(overview, isFirst) {
  remember(overview, isFirst);
  const isFirstEver = app.overview === null;
  app.overview = overview;
  lostAt = null;
  if (isFirst && !isFirstEver) {
    // A reload of the configuration may have changed the rights; the next event reports a failure.
    get("api/session").then((session) => { app.session = session; }, () => {});
  }
  if (!page.element.isConnected) {
    byId("main").replaceChildren(page.element);
  }
  showState();
  setText(byId("footer"), `Tollgate ${overview.version} · up ${duration(overview.time - overview.started)} · ${
    app.session.tokens ? `signed in as ${app.session.principal}` : "no token needed"}`);
  if (!app.isPaused || isFirstEver) {
    page.update?.(overview);
  }
}

function onLost(error) {
  lostAt ??= Date.now() / 1000;
  isSignedOut = error.status === 401;
  showState();
  if (error.status === 401) {
    askForToken(token.get() === null ? null : error.message);
  } else if (error.status === 403 || error.status === 503) {
    byId("main").replaceChildren(empty("The dashboard cannot be shown", sentence(error.message)));
  }
}

function showState() {
  const [state, text] = isSignedOut ? ["signed-out", "Signed out"]
    : lostAt !== null ? ["lost", "Disconnected"]
      : app.overview === null ? ["connecting", "Connecting"]
        : app.isPaused ? ["paused", "Paused"] : ["live", "Live"];
  byId("state").dataset.state = state;
  setText(byId("state"), text);
  document.body.classList.toggle("stale", state === "lost" && app.overview !== null);
  const banners = [];
  // What was reported before a lost connection may be over.
  const overview = lostAt === null ? app.overview : null;
  if (state === "lost" && app.overview !== null) {
    banners.push(["bad", `Disconnected since ${clock(lostAt)}. The numbers below are from before; trying again.`]);
  }
  if (overview?.store.problem) {
    banners.push(["bad", `The store is unavailable: ${overview.store.problem}`]);
  }
  if (overview !== null && !overview.configuration.accepted) {
    banners.push(["bad", "The last reload was rejected; the previous configuration stays active.", "#/config", "Show the reason"]);
  }
  if (overview?.draining) {
    banners.push(["warn", "The daemon is draining and stops soon."]);
  }
  const shown = JSON.stringify(banners);
  if (byId("banner").dataset.shown !== shown) {
    byId("banner").dataset.shown = shown;
    byId("banner").replaceChildren(...banners.map(([kind, text, href, link]) =>
      h("p", { "data-state": kind }, text, " ", href === undefined ? "" : h("a", { href }, link))));
  }
}

// Asks for a token, and begins again with it.
function askForToken(reason) {
  const input = h("input", { type: "password", required: true, autocomplete: "off", minlength: "16" });
  byId("main").replaceChildren(h("form", {
    class: "card login",
    onsubmit: (event) => {
      event.preventDefault();
      token.set(input.value.trim());
      byId("main").replaceChildren(h("p", { class: "loading" }, "Connecting to the daemon…"));
      start();
    },
  }, h("h1", {}, "Sign in"),
  reason === null ? null : h("p", { class: "problem", role: "alert" }, sentence(reason)),
  field("Token", input, "A token of the configuration with the scope read, and operate to reset and block keys. It is kept until you close this tab."),
  h("button", { type: "submit", class: "primary" }, "Sign in")));
  input.focus();
}

async function start() {
  lostAt = null;
  isSignedOut = false;
  showState();
  try {
    app.session = await get("api/session");
    byId("sign-out").hidden = token.get() === null;
  } catch (error) {
    if (error.status === 401 || error.status === 403) {
      return onLost(error);
    }
    // The stream reports that the daemon does not answer.
  }
  if (app.overview === null) {
    show(false);
  } else {
    byId("main").replaceChildren(page.element);
  }
  follow(onEvent, onLost);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  setText(byId("theme"), `Theme: ${theme}`);
  page?.redraw?.();
}

// The target of this link is no page.
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
byId("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  localStorage.setItem("tollgate-theme", next);
  setTheme(next);
});
byId("pause").addEventListener("click", () => {
  app.isPaused = !app.isPaused;
  byId("pause").setAttribute("aria-pressed", app.isPaused);
  setText(byId("pause"), app.isPaused ? "Resume" : "Pause");
  showState();
});
byId("sign-out").addEventListener("click", () => {
  token.clear();
  location.reload();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page?.redraw?.());
window.addEventListener("hashchange", () => show(true));
const saved = localStorage.getItem("tollgate-theme");
setTheme(THEMES.includes(saved) ? saved : "auto");
start();
