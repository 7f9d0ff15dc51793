// Prints the replies that node-redis gets, one per line: node_redis.js RESP PORT TOKEN-PORT TOKEN
const [resp, port, tokenPort, token] = process.argv.slice(2);
const { createClient, RESP_TYPES } = require("redis");

async function connect(more = {}, toPort = port) {
  const client = createClient({
    RESP: Number(resp),
    // A failure ends the run instead of being retried forever.
    socket: { host: "127.0.0.1", port: Number(toPort), reconnectStrategy: false },
    ...more,
  });
  // Rejections report failures.
  client.on("error", () => {});
  await client.connect();
  return client;
}

// The fields of a decision: a flat list, or an object of RESP3's map.
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
  (error) => `${error.constructor.name}: ${error.message}`.split(";")[0],
);

async function handshake(client) {
  console.log("ready", client.isReady, await client.ping(), await client.echo("hello"));
  const named = await connect({ name: "shop" });
  console.log("named", await named.clientGetName());
  await named.close();
  const selected = await failed(connect({ database: 1 }));
  console.log("database 1", selected);
  const url = createClient({ RESP: Number(resp), url: `redis://127.0.0.1:${port}` });
  await url.connect();
  console.log("by URL", await url.ping());
  url.destroy();
}

async function throttle(client) {
  const call = (...words) => client.sendCommand(["CL.THROTTLE", "user", "15", "30", "3600", ...words]);
  console.log("fresh", await call());
  console.log("denied", (await call("16"))[0]);
  console.log("exists", await client.exists("user"), await client.del("user"));
  const key = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  for (const bytes of [key, key, key.subarray(0, 255)]) {
    console.log("key", shown(await binary.sendCommand(["TOLLGATE.CHECK", "api", bytes])));
  }
}

async function pipelines(client) {
  // Commands of one tick are one pipeline.
  const check = () => client.sendCommand(["TOLLGATE.CHECK", "many", "pipeline"]);
  const replies = (await Promise.all(Array.from({ length: 1500 }, check))).map(fields);
  const remaining = replies.filter((reply) => reply.allowed).map((reply) => reply.remaining);
  const isDescending = remaining.every((count, index) => count === 999 - index);
  console.log("in order", isDescending, remaining.length, replies.length);
  const transaction = client.multi();
  for (const policy of ["api", "no-such-policy", "api"]) {
    transaction.addCommand(["TOLLGATE.CHECK", policy, "transaction"]);
  }
  const executed = await transaction.exec().catch((error) => error.replies);
  console.log("around a failure", executed.map((reply) => (reply instanceof Error ? "error" : shown(reply))));
}

async function tokens() {
  const check = async (login) => {
    const attempt = async () => {
      const client = await connect(login, tokenPort);
      const reply = await client.sendCommand(["TOLLGATE.CHECK", "api", "t"]);
      client.destroy();
      return shown(reply);
    };
    return (await failed(attempt())).split(" ", 6).join(" ");
  };
  console.log("the token:", await check({ password: token }));
  console.log("by its name:", await check({ username: "gateway", password: token }));
  console.log("another:", (await check({ password: "guessed" })).split(" ", 2).join(" "));
  console.log("no token:", (await check({})).split(" ", 2).join(" "));
}

async function run() {
  const client = await connect();
  await handshake(client);
  await throttle(client);
  await pipelines(client);
  console.log("unknown", await failed(client.sendCommand(["TOLLGATE.CHECK", "no-such-policy", "k"])));
  await tokens();
  console.log("quit", await client.close());
}

// Over RESP2, the client leaves the connection of a failed handshake open, hence the exit.
run().then(
  () => process.exit(),
  (error) => {
    console.log(error);
    process.exit(1);
  },
);
