// Uses the dashboard in headless Chromium, as a scenario of the test says, and prints what it sees.
//
//   node browser.js SCENARIO DASHBOARD API [FOLDER]
"use strict";

const fs = require("node:fs");
const readline = require("node:readline");
const puppeteer = require("puppeteer-core");

const [scenario, dashboard, api, folder] = process.argv.slice(2);
const TOKENS = { viewer: "viewer-0123456789", ops: "ops-0123456789abcdef" };
const FORMATS = [
  { name: "light", width: 1280, height: 860, scheme: "light" },
  { name: "dark", width: 1280, height: 860, scheme: "dark" },
  { name: "phone", width: 360, height: 740, scheme: "light" },
];

// The pages of the manual.
const PICTURES = ["overview-light", "overview-dark", "overview-phone", "key-light"];

// Spends the key of a policy, with a note if there is one.
async function spend(policy, key, times, note = undefined) {
  for (let i = 0; i < times; i += 1) {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${api}/v1/check`, { method: "POST", headers, body: JSON.stringify({ policy, key, note }) });
    if (![200, 429].includes(response.status)) {
      throw new Error(await response.text());
    }
  }
}

// Waits until the daemon, which reads its counters once a second, reports denials of a policy.
async function reportsDenials(policy) {
  for (let i = 0; i < 500; i += 1) {
    const overview = await (await fetch(`${dashboard}api/overview`)).json();
    if (overview.policies.find((one) => one.name === policy).totals.denied > 0) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`no denials of ${policy} are reported`);
}

// Opens a page. Collects what a browser reports about it.
async function open(browser, hash, options = {}) {
  const page = await browser.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) {
      page.problems.push(message.text());
    }
  });
  page.on("pageerror", (error) => page.problems.push(error.message));
  await page.evaluateOnNewDocument(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`content policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  const { width, height, scheme } = options.format ?? FORMATS[0];
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: scheme },
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);
  await page.setBypassCSP(options.bypass ?? false);
  await page.goto(`${dashboard}${hash}`, { waitUntil: "domcontentloaded" });
  return page;
}

// Reads the element of a selector. `page.$eval` finds it and reads it in two steps, between which the page may
// replace it; a replaced element has no lines.
const read = (page, selector, read) => page.evaluate(`(${read})(document.querySelector(${JSON.stringify(selector)}))`);

const text = (page) => page.evaluate(() => document.body.innerText);

// Waits until the page shows a text. Returns the milliseconds.
async function shows(page, expected, timeout = 15000) {
  const start = Date.now();
  await page.waitForFunction((expected) => document.body.innerText.includes(expected), { timeout, polling: 20 }, expected)
    .catch(async () => {
      throw new Error(`${JSON.stringify(expected)} is not in\n${await text(page)}`);
    });
  return Date.now() - start;
}

const focused = (page) => page.evaluate(() => document.activeElement.textContent.trim());

// Presses Tab until a button has the focus.
async function tabTo(page, name) {
  for (let i = 0; i < 40; i += 1) {
    await page.keyboard.press("Tab");
    if (await focused(page) === name) {
      return;
    }
  }
  throw new Error(`Tab does not reach ${name}`);
}

const SCENARIOS = {
  async denial(browser) {
    const page = await open(browser, "#/");
    await shows(page, "Live");
    // Without traffic, the chart has no denials and the table is sorted by them.
    await shows(page, "5/d log");
    const denied = () => page.waitForFunction(() =>
      document.querySelector(".tiles li:nth-child(2) strong").textContent !== "0/s", { timeout: 15000, polling: 20 });
    await spend("log", "user:1", 6);
    const start = Date.now();
    await denied();
    console.log("a denial is shown within two seconds:", Date.now() - start < 2000);
    console.log(await read(page, ".tiles li:nth-child(2)", (tile) => tile.innerText.split("\n").at(-1)));
    console.log(await page.$eval("tbody tr", (row) => `${row.cells[0].innerText}, marked: ${row.querySelector("td.marked") !== null}`));
    await page.click("tbody th a");
    await shows(page, "5 allowed and 1 denied since the start");
    console.log(await page.title());
    await page.click("details summary");
    const row = await page.waitForSelector("figure tbody tr");
    console.log("numbers behind the chart:", (await row.$$("td")).length);
  },

  async key(browser) {
    await spend("log", "user <b>2</b>", 2);
    const page = await open(browser, "#/keys");
    await shows(page, "Find a key");
    await page.select("select[name=policy]", "log");
    await page.type("input[name=key]", "user <b>2</b>");
    await page.keyboard.press("Enter");
    await shows(page, "2 of 5 used");
    console.log(await page.$eval("h1", (heading) => heading.innerText));
    console.log(await page.$eval(".verdict", (verdict) => verdict.innerText));
    const gauge = await page.$eval("[role=meter]", (meter) => `${meter.ariaLabel}: ${meter.ariaValueText}`);
    console.log(gauge);
    await spend("log", "user <b>2</b>", 3);
    await shows(page, "5 of 5 used");
    console.log((await page.$eval(".verdict", (verdict) => verdict.innerText)).replace(/ in .*/, " in …"));
    const missing = await open(browser, "#/keys?policy=none&key=a");
    await shows(missing, "This key cannot be shown");
    console.log((await text(missing)).match(/there is no policy.*/)[0]);
  },

  async tracked(browser) {
    await spend("log", "quiet", 3);
    await spend("log", "203.0.113.9", 9, "POST /login of ada");
    await reportsDenials("log");
    const page = await open(browser, "#/keys");
    await shows(page, "Keys of log");
    await shows(page, "203.0.113.9");
    const keys = () => page.$$eval("main tbody tr", (rows) =>
      rows.map((row) => [...row.cells].slice(0, 4).map((cell) => cell.innerText).join(" ")).join(", "));
    console.log("most denied:", await keys());
    await page.evaluate(() => [...document.querySelectorAll("button")].find((button) => button.innerText === "Busiest").click());
    await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 2);
    console.log("busiest:", await keys());
    await page.click("main tbody th a");
    await shows(page, "Recent requests");
    console.log(await read(page, "[aria-label=Usage] dl", (list) =>
      [...list.children].slice(0, 3).map((pair) => pair.innerText.replace("\n", " ")).join(", ")));
    console.log(await page.$eval("[aria-label='Recent requests'] tbody tr", (row) =>
      [...row.cells].slice(1).map((cell) => cell.innerText).join(" · ")));
    console.log(await page.$eval("[aria-label=Timeline] [role=img]", (chart) => chart.ariaLabel.split(".")[0]));
    await page.goto(`${dashboard}#/policies/log`);
    await shows(page, "203.0.113.9");
    console.log(await page.title(), page.problems);
  },

  async keyboard(browser) {
    await spend("log", "user:3", 6);
    const page = await open(browser, "#/keys?policy=log&key=user%3A3");
    await shows(page, "Reset…");
    await page.keyboard.press("Tab");
    console.log("first:", await focused(page));
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "main");
    console.log("page:", await page.evaluate(() => location.hash));
    await tabTo(page, "Reset…");
    await page.keyboard.press("Enter");
    await shows(page, "Reset user:3?");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog") === null);
    console.log("cancelled:", await focused(page));
    await page.keyboard.press("Enter");
    await shows(page, "Reset user:3?");
    await tabTo(page, "Reset the key");
    await page.keyboard.press("Enter");
    await shows(page, "The key was reset.");
    await shows(page, "0 of 5 used");
    console.log("reset:", await focused(page));
    await tabTo(page, "Block…");
    await page.keyboard.press("Enter");
    await shows(page, "For how long");
    await tabTo(page, "Block the key");
    await page.keyboard.press("Enter");
    await shows(page, "The key is blocked.");
    await shows(page, "The next request is denied");
    console.log(await page.$eval(".verdict", (verdict) => verdict.innerText));
    await tabTo(page, "Unblock…");
    await page.keyboard.press("Enter");
    await tabTo(page, "Unblock the key");
    await page.keyboard.press("Enter");
    await shows(page, "The key is unblocked.");
    await shows(page, "The next request is allowed");
    console.log("problems:", page.problems);
  },

  async restart(browser) {
    const page = await open(browser, "#/");
    await shows(page, "Live");
    await spend("log", "user:4", 6);
    await shows(page, "1 since the start");
    const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    console.log("stop");
    await lines.next();
    console.log("disconnected:", await shows(page, "Disconnected since") >= 0);
    console.log("start");
    await lines.next();
    console.log("live again:", await shows(page, "Live", 20000) >= 0);
    console.log("banner:", (await page.$eval("#banner", (banner) => banner.innerText)) || "none");
    // The new process has counted nothing, and the chart keeps what the old one has.
    await shows(page, "0 since the start");
    await page.click("details summary");
    await page.waitForFunction(() => [...document.querySelectorAll("figure tbody td")].some((cell) => cell.textContent === "–"));
    console.log("the gap is shown");
  },

  async token(browser) {
    const page = await open(browser, "#/keys?policy=log&key=user%3A5");
    await shows(page, "Sign in");
    console.log("focus:", await page.evaluate(() => document.activeElement.type));
    await page.keyboard.type("wrong-0123456789");
    await page.keyboard.press("Enter");
    await shows(page, "Invalid token");
    await page.keyboard.type(TOKENS.viewer);
    await page.keyboard.press("Enter");
    await shows(page, "Reset and block are for operators.");
    console.log("buttons:", await page.$$eval("main button", (buttons) => buttons.length));
    await shows(page, "signed in as viewer");
    console.log("cookies:", (await page.cookies()).length);
    const other = await open(browser, "#/");
    await shows(other, "Sign in");
    await page.bringToFront();
    await page.click("#sign-out");
    await shows(page, "Sign in");
    await page.keyboard.type(TOKENS.ops);
    await page.keyboard.press("Enter");
    await shows(page, "Block…");
    console.log(await page.$$eval("main button", (buttons) => buttons.map((button) => button.innerText).join(" ")));
  },

  // Every page in every format: no report of the browser, nothing that axe objects to, nothing cut off.
  async pages(browser) {
    const PAGES = {
      overview: ["#/", "Denied in total"],
      policy: ["#/policies/log", "By interface"],
      keys: ["#/keys", "Last seen"],
      key: ["#/keys?policy=log&key=203.0.113.9", "Recent requests"],
      try: ["#/try", "What would it get?"],
      config: ["#/config", "Effective configuration"],
      missing: ["#/nothing", "There is no such page"],
    };
    let isOver = false;
    const traffic = (async () => {
      for (let i = 0; !isOver; i += 1) {
        await spend("search", `user:${i % 7}`, 1 + (i % 4));
        await spend("api", "bot:7", i % 5 === 0 ? 9 : 1);
        await spend("api", `user:${i % 11}`, 1);
        await spend("log", "203.0.113.9", i % 4 === 0 ? 1 : 0, `POST /login of user ${i % 3}`);
        await spend("trial", "user:6", i % 3 === 0 ? 1 : 0);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    await spend("log", "203.0.113.9", 7, "POST /login of ada");
    // Enough for a chart.
    await new Promise((resolve) => setTimeout(resolve, 15000));
    const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
    for (const format of FORMATS) {
      for (const [name, [hash, expected]] of Object.entries(PAGES)) {
        const page = await open(browser, hash, { format });
        await shows(page, expected);
        await new Promise((resolve) => setTimeout(resolve, 300));
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (page.problems.length > 0 || overflow > 0) {
          console.log(name, format.name, page.problems, "overflow", overflow);
        }
        if (folder !== undefined && PICTURES.includes(`${name}-${format.name}`)) {
          const path = `${folder}/dashboard-${name}-${format.name}.webp`;
          await page.screenshot({ path, type: "webp", quality: 85, fullPage: name !== "key" });
        }
        await page.close();
        const checked = await open(browser, hash, { format, bypass: true });
        await shows(checked, expected);
        await checked.evaluate(axe);
        const { violations } = await checked.evaluate(() => window.axe.run());
        for (const { id, impact, nodes } of violations) {
          console.log(name, format.name, `axe ${impact} ${id}`, nodes.map((node) => node.html).slice(0, 3));
        }
        await checked.close();
      }
    }
    isOver = true;
    await traffic;
    console.log("checked", Object.keys(PAGES).length, "pages in", FORMATS.length, "formats");
  },
};

(async () => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM,
    // Tests may run as root, in containers with little shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--lang=en-US"],
  });
  try {
    await SCENARIOS[scenario](browser);
  } finally {
    await browser.close();
  }
  process.exit(0);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
