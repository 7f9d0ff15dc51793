// Prints the replies that ioredis gets, one per line: ioredis.js VERSION PORT TOKEN-PORT TOKEN
const [version, port, tokenPort, token] = process.argv.slice(2);
const Redis = require(version);

// A failure ends the run instead of being retried forever.
const options = { host: "127.0.0.1", maxRetriesPerRequest: 0, retryStrategy: null };

function connect(more) {
  const client = new Redis({ ...options, port: Number(port), ...more });
  client.on("error", (error) => {
    client.failure = error;
  });
  return client;
}

// The fields of a decision, a map or a flat list depending on the protocol.
function fields(reply) {
  const text = (value) => (Buffer.isBuffer(value) ? value.toString() : value);
  if (!Array.isArray(reply)) return reply instanceof Map ? Object.fromEntries(reply) : reply;
  const named = {};
  for (let at = 0; at < reply.length; at += 2) named[text(reply[at])] = text(reply[at + 1]);
  return named;
}

function shown(reply) {
  const { allowed, remaining, capacity } = fields(reply);
  return `${Number(allowed)} ${remaining} of ${capacity}`;
}

const failed = (promise) => promise.then(
  (value) => `no failure ${value}`,
  // Other tests check the hint after the semicolon.
  (error) => `${error.name}: ${error.message}`.split(";")[0],
);

async function ready(client) {
  await new Promise((done) => client.once("ready", done));
  console.log("ready", client.status, await client.ping(), await client.echo("hello"));
  const info = await client.info();
  console.log("loading", /^loading:0\r?$/m.test(info));
  const named = connect({ connectionName: "shop" });
  console.log("named", await named.client("GETNAME"));
  await named.quit();
}

async function throttle(client) {
  console.log("fresh", await client.call("CL.THROTTLE", "user", 15, 30, 3600));
  console.log("denied", (await client.call("CL.THROTTLE", "user", 15, 30, 3600, 16))[0]);
  console.log("exists", await client.exists("user"), await client.del("user"));
  const key = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
  for (const bytes of [key, key, key.subarray(0, 255)]) {
    console.log("key", shown(await client.callBuffer("TOLLGATE.CHECK", "api", bytes)));
  }
}

async function pipelines(client) {
  const pipeline = client.pipeline();
  for (let at = 0; at < 1500; at += 1) pipeline.call("TOLLGATE.CHECK", "many", "pipeline");
  const replies = (await pipeline.exec()).map(([error, reply]) => fields(reply));
  const remaining = replies.filter((reply) => reply.allowed).map((reply) => reply.remaining);
  const isDescending = remaining.every((count, index) => count === 999 - index);
  console.log("in order", isDescending, remaining.length, replies.length);
  const multi = client.multi();
  for (const policy of ["api", "no-such-policy", "api"]) multi.call("TOLLGATE.CHECK", policy, "multi");
  const transaction = await multi.exec();
  console.log("around a failure", transaction.map(([error, reply]) => (error ? error.name : shown(reply))));
}

async function automatic() {
  const client = connect({ enableAutoPipelining: true });
  const calls = Array.from({ length: 1500 }, () => client.call("TOLLGATE.CHECK", "many", "automatic"));
  const allowed = (await Promise.all(calls)).filter((reply) => fields(reply).allowed);
  console.log("in one pipeline", allowed.length);
  await client.quit();
}

async function tokens() {
  const check = async (login) => {
    const client = connect({ port: Number(tokenPort), ...login });
    const answer = await failed(client.call("TOLLGATE.CHECK", "api", "t").then(() => ""));
    client.disconnect();
    return answer.split(" ", 2).join(" ");
  };
  console.log("the token:", await check({ password: token }));
  console.log("by its name:", await check({ username: "gateway", password: token }));
  console.log("another:", await check({ password: "guessed" }));
  console.log("no token:", await check({}));
}

async function run() {
  const client = connect({});
  await ready(client);
  await throttle(client);
  await pipelines(client);
  console.log("unknown", await failed(client.call("TOLLGATE.CHECK", "no-such-policy", "k")));
  await automatic();
  await tokens();
  console.log("quit", await client.quit());
}

run().catch((error) => {
  console.log(error);
  process.exitCode = 1;
});
