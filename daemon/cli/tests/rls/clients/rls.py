"""Prints the responses of the rate limit service, one per line: rls.py PORT TOKEN-PORT TOKEN"""

import concurrent.futures
import sys

import grpc
from envoy.extensions.common.ratelimit.v3.ratelimit_pb2 import RateLimitDescriptor
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from envoy.type.v3 import ratelimit_unit_pb2
from google.protobuf.json_format import MessageToDict
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

PORT, TOKEN_PORT, TOKEN = sys.argv[1:]
TIMEOUT = 60
SERVICE = "envoy.service.ratelimit.v3.RateLimitService"
Response = rls_pb2.RateLimitResponse
# The published interface is older than the descriptor's field 4, `is_negative_hits`.
NEGATIVE_HITS = b"\x20\x01"

channel = grpc.insecure_channel(f"127.0.0.1:{PORT}")
stub = rls_pb2_grpc.RateLimitServiceStub(channel)


def descriptor(text, addend=None, refunds=False, limit=None):
    """`user=7 path=a` as a descriptor of two entries."""
    entries = [dict(zip(("key", "value"), entry.split("=", 1))) for entry in text.split()]
    result = RateLimitDescriptor(entries=entries)
    if addend is not None:
        result.hits_addend.value = addend
    if refunds:
        result.MergeFromString(NEGATIVE_HITS)
    if limit is not None:
        result.limit.requests_per_unit, unit = limit
        result.limit.unit = ratelimit_unit_pb2.RateLimitUnit.Value(unit)
    return result


def request(domain, descriptors, addend=0):
    parsed = [descriptor(item) if isinstance(item, str) else item for item in descriptors]
    return rls_pb2.RateLimitRequest(domain=domain, descriptors=parsed, hits_addend=addend)


def shown(status):
    words = [Response.Code.Name(status.code)]
    if status.HasField("current_limit"):
        limit = status.current_limit
        unit = Response.RateLimit.Unit.Name(limit.unit)
        words += [f"{limit.requests_per_unit}/{unit}", limit.name or "-"]
    words.append(str(status.limit_remaining))
    if status.HasField("duration_until_reset"):
        wait = status.duration_until_reset
        # Tests with a manual clock check the exact time.
        words.append("later" if wait.seconds > 0 and wait.nanos == 0 else f"{wait}".strip() or "0s")
    return " ".join(words)


def ask(title, domain, *descriptors, addend=0):
    response = stub.ShouldRateLimit(request(domain, descriptors, addend), timeout=TIMEOUT)
    statuses = " | ".join(shown(status) for status in response.statuses)
    print(f"{title}: {Response.Code.Name(response.overall_code)} | {statuses}")
    return response


def failure(work):
    try:
        return f"no failure but {work()}".strip()
    except grpc.RpcError as error:
        return f"{error.code().name}: {error.details()}"


def statuses():
    for title in ("first", "second", "third", "fourth"):
        ask(title, "shop", "user=7")
    ask("no rule", "shop", "absent=7")
    ask("in order", "shop", "absent=7", "user=8", "user=7", "user=9")
    ask("a denied request is not charged", "shop", "user=8", "user=9")
    ask("nested", "shop", "plan=free path=api")
    ask("not at the end", "shop", "plan=free")
    ask("unlimited", "shop", "plan=gold")
    ask("in the notation of Tollgate", "shop", "ip=192.0.2.1")
    ask("no such domain", "elsewhere", "user=7")
    ask("a policy's name", "api", "user=7")


def addends():
    ask("of the request", "shop", "user=a", addend=2)
    ask("of the descriptor", "shop", descriptor("user=b", addend=3), addend=2)
    ask("a peek", "shop", descriptor("user=b", addend=0))
    ask("a refund", "shop", descriptor("user=b", addend=2, refunds=True))
    ask("too much", "shop", descriptor("user=b", addend=9))
    ask("the rest", "shop", descriptor("user=b", addend=2))


def overrides():
    hourly = (50, "HOUR")
    ask("an override", "shop", descriptor("user=c", limit=hourly))
    ask("the same override", "shop", descriptor("user=c", limit=hourly))


def metadata():
    response = ask("with metadata", "shop", "plan=free path=api")
    print("metadata:", sorted(MessageToDict(response.dynamic_metadata)))


def errors():
    def send(*arguments):
        return stub.ShouldRateLimit(request(*arguments), timeout=TIMEOUT)

    print("no domain:", failure(lambda: send("", ["user=7"])))
    print("no descriptors:", failure(lambda: send("shop", [])))
    raw = channel.unary_unary(f"/{SERVICE}/ShouldRateLimit")
    # An invalid wire type.
    print("no message:", failure(lambda: raw(b"\xff\xff", timeout=TIMEOUT)).split(":")[0])
    other = channel.unary_unary(f"/{SERVICE}/NoSuchMethod")
    print("no method:", failure(lambda: other(b"", timeout=TIMEOUT)).split(":")[0])
    other = channel.unary_unary("/no.such.Service/Method")
    print("no service:", failure(lambda: other(b"", timeout=TIMEOUT)).split(":")[0])
    ask("as before", "shop", descriptor("user=d", addend=0))


def health():
    checks = health_pb2_grpc.HealthStub(channel)

    def status(service):
        answer = checks.Check(health_pb2.HealthCheckRequest(service=service), timeout=TIMEOUT)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)

    for service in ("", "ratelimit", SERVICE):
        print(f"health of '{service}':", status(service))
    print("health of another:", failure(lambda: status("another")).split(":")[0])
    watch = checks.Watch(health_pb2.HealthCheckRequest(service="ratelimit"), timeout=TIMEOUT)
    print("watched:", health_pb2.HealthCheckResponse.ServingStatus.Name(next(watch).status))
    watch.cancel()


def reflection():
    # Both versions have the same messages.
    for version in ("v1", "v1alpha"):
        method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        ask_all = channel.stream_stream(
            method,
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        requests = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
        ]
        listed, file = ask_all(iter(requests), timeout=TIMEOUT)
        names = {service.name for service in listed.list_services_response.service}
        files = file.file_descriptor_response.file_descriptor_proto
        described = any(b"ShouldRateLimit" in file for file in files)
        print(f"reflection {version}:", SERVICE in names, "grpc.health.v1.Health" in names, described)


def many_at_once():
    def one(_):
        own = grpc.insecure_channel(f"127.0.0.1:{PORT}", [("grpc.use_local_subchannel_pool", 1)])
        with own:
            stub = rls_pb2_grpc.RateLimitServiceStub(own)
            calls = [stub.ShouldRateLimit.future(request("shop", ["many=1"]), timeout=TIMEOUT) for _ in range(40)]
            return sum(call.result().overall_code == Response.OK for call in calls)

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        print("at once:", sum(pool.map(one, range(20))))


def tokens():
    with grpc.insecure_channel(f"127.0.0.1:{TOKEN_PORT}") as guarded:
        stub = rls_pb2_grpc.RateLimitServiceStub(guarded)

        def send(*metadata):
            answer = stub.ShouldRateLimit(request("shop", ["user=7"]), timeout=TIMEOUT, metadata=metadata)
            return Response.Code.Name(answer.overall_code)

        print("no token:", failure(send).split(":")[0])
        print("another:", failure(lambda: send(("authorization", "Bearer guessed"))).split(":")[0])
        print("the token:", send(("authorization", f"Bearer {TOKEN}")))


for part in (statuses, addends, overrides, metadata, errors, health, reflection, many_at_once, tokens):
    part()
