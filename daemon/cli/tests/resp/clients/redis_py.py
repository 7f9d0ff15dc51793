"""Prints the replies that redis-py gets, one per line: redis_py.py PROTOCOL PORT TOKEN-PORT TOKEN"""

import asyncio
import sys

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

PROTOCOL, PORT, TOKEN_PORT, TOKEN = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
TIMEOUT = 60


def connect(**more):
    return redis.Redis(port=PORT, protocol=PROTOCOL, socket_timeout=TIMEOUT, **more)


def fields(reply):
    """The fields of a decision, a map or a flat list depending on the protocol."""
    flat = list(reply)
    pairs = reply.items() if isinstance(reply, dict) else zip(flat[::2], flat[1::2])
    return {name if isinstance(name, str) else name.decode(): value for name, value in pairs}


def shown(reply):
    decision = fields(reply)
    return f"{int(decision['allowed'])} {decision['remaining']} of {decision['capacity']}"


def failure(work):
    try:
        return f"no failure but {work()!r}"
    except redis.RedisError as error:
        # Other tests check the hint after the semicolon.
        return f"{type(error).__name__}: {error}".partition(";")[0].strip()


def greeting(client):
    print("ping", client.ping(), client.echo("hello"))
    named = connect(client_name="shop", decode_responses=True)
    print("named", named.client_getname())
    print("its library", named.client_info()["lib-name"].partition("(")[0])
    print("ids differ", client.client_id() != connect().client_id())
    print("database 0", connect(db=0).ping())
    print("database 1", failure(connect(db=1).ping))
    print("by URL", redis.from_url(f"redis://127.0.0.1:{PORT}/0?protocol={PROTOCOL}").ping())


def healthy(client):
    connection = connect(health_check_interval=1).connection_pool.get_connection()
    connection.next_health_check = 1e-9
    print("health", connection.check_health())


def throttle(client):
    call = client.execute_command
    print("fresh", call("CL.THROTTLE", "user", 15, 30, 3600))
    print("again", call("CL.THROTTLE", "user", 15, 30, 3600, 15))
    print("denied", call("CL.THROTTLE", "user", 15, 30, 3600))
    print("too much", call("CL.THROTTLE", "user", 15, 30, 3600, 17)[:4])
    print("exists", client.exists("user"), client.exists("absent"))
    print("lives", 0 < client.ttl("user") <= 1920, client.ttl("absent"))
    print("deleted", client.delete("user", "absent"), client.exists("user"))
    print("fresh", call("CL.THROTTLE", "user", 15, 30, 3600))
    print("too few", failure(lambda: call("CL.THROTTLE", "user", 15)))


def pipelines(client):
    pipeline = client.pipeline()
    for quantity in (1, 9, 1):
        pipeline.execute_command("CL.THROTTLE", "transaction", 9, 10, 86400, quantity)
    print("transaction", [reply[0] for reply in pipeline.execute()])
    pipeline = client.pipeline()
    pipeline.execute_command("TOLLGATE.CHECK", "api", "transaction")
    pipeline.execute_command("TOLLGATE.CHECK", "no-such-policy", "transaction")
    pipeline.execute_command("TOLLGATE.CHECK", "api", "transaction")
    first, second, third = pipeline.execute(raise_on_error=False)
    print("around a failure", shown(first), type(second).__name__, shown(third))
    pipeline = client.pipeline(transaction=False)
    for _ in range(1_500):
        pipeline.execute_command("TOLLGATE.CHECK", "many", "pipeline")
    decisions = [fields(reply) for reply in pipeline.execute()]
    remaining = [decision["remaining"] for decision in decisions if decision["allowed"]]
    print("in order", remaining == list(range(999, -1, -1)), len(decisions))


def keys(client):
    every_byte = bytes(range(256))
    for key in (every_byte, every_byte, every_byte[:255], "ключ"):
        print("key", shown(client.execute_command("TOLLGATE.CHECK", "api", key)))
    print("no key", failure(lambda: client.execute_command("TOLLGATE.CHECK", "api", "")))
    text = connect(decode_responses=True)
    decision = fields(text.execute_command("TOLLGATE.CHECK", "api", "ключ"))
    print("as text", shown(decision), decision["policy"], decision["source"])


def verbs(client):
    call = client.execute_command
    print("cost", shown(call("TOLLGATE.CHECK", "api", "k", "COST", 3)))
    print("peek", shown(call("TOLLGATE.PEEK", "api", "k", "COST", 3)))
    print("take", fields(call("TOLLGATE.TAKE", "api", "k", "COST", 7))["granted"])
    print("denied", shown(call("TOLLGATE.CHECK", "api", "k")))
    print("unknown", failure(lambda: call("TOLLGATE.CHECK", "no-such-policy", "k")))
    print("not ours", failure(lambda: client.get("k")))


async def many_at_once():
    client = redis.asyncio.Redis(port=PORT, protocol=PROTOCOL, socket_timeout=TIMEOUT)

    async def ask():
        replies = [await client.execute_command("TOLLGATE.CHECK", "many", "async") for _ in range(30)]
        return sum(bool(fields(reply)["allowed"]) for reply in replies)

    print("at once", sum(await asyncio.gather(*(ask() for _ in range(40)))))
    await client.aclose()


def tokens():
    # The default retries for seconds.
    once = {"socket_timeout": TIMEOUT, "retry": Retry(NoBackoff(), 0)}

    def check(**login):
        client = redis.Redis(port=TOKEN_PORT, protocol=PROTOCOL, **once, **login)
        answer = failure(lambda: shown(client.execute_command("TOLLGATE.CHECK", "api", "t")))
        return answer.partition(":")[0]

    print("no token:", check())
    print("another:", check(password="guessed"))
    print("the token:", check(password=TOKEN))
    print("by its name:", check(username="gateway", password=TOKEN))
    print("by another:", check(username="root", password=TOKEN))


with connect() as client:
    for part in (greeting, healthy, throttle, pipelines, keys, verbs):
        part(client)
asyncio.run(many_at_once())
tokens()
