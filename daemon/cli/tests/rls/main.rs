//! A Python client of Envoy's rate limit service with the daemon.
//!
//! Skipped with a message on standard error if Python or its packages are not installed.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;

use tollgate_testkit::ClientKind;

use process::{Daemon, SECRET, TOKENS, check_lines, printed};

/// Windows of a year or more, so that hardly any ends during a test.
const RULES: &str = r#"
domain: shop
descriptors:
  - key: user
    rate_limit: { name: per-user, unit: year, requests_per_unit: 3 }
  - key: plan
    value: free
    descriptors:
      - key: path
        rate_limit: { unit: year, requests_per_unit: 100 }
        metadata: { owner: billing }
  - key: plan
    value: gold
    rate_limit: { unlimited: true }
  - key: ip
    rate_limit: { limit: "7/90d log" }
  - key: many
    rate_limit: { unit: year, requests_per_unit: 500 }
"#;

const CONFIG: &str = "
policies: { api: { limits: [5/d log] } }
envoy: { config: rules.yaml, dynamic_metadata: true }
";

const EXPECTED: &str = "
first: OK | OK 3/YEAR per-user 2 later
second: OK | OK 3/YEAR per-user 1 later
third: OK | OK 3/YEAR per-user 0 later
fourth: OVER_LIMIT | OVER_LIMIT 3/YEAR per-user 0 later
no rule: OK | OK 0
in order: OVER_LIMIT | OK 0 | OK 3/YEAR per-user 3 0s | OVER_LIMIT 3/YEAR per-user 0 later | OK 3/YEAR per-user 3 0s
a denied request is not charged: OK | OK 3/YEAR per-user 2 later | OK 3/YEAR per-user 2 later
nested: OK | OK 100/YEAR - 99 later
not at the end: OK | OK 0
unlimited: OK | OK 4294967295
in the notation of Tollgate: OK | OK 7/UNKNOWN - 6 later
no such domain: OK | OK 0
a policy's name: OK | OK 5/DAY api 4 later
of the request: OK | OK 3/YEAR per-user 1 later
of the descriptor: OK | OK 3/YEAR per-user 0 later
a peek: OK | OK 3/YEAR per-user 0 later
a refund: OK | OK 3/YEAR per-user 2 later
too much: OVER_LIMIT | OVER_LIMIT 3/YEAR per-user 2
the rest: OK | OK 3/YEAR per-user 0 later
an override: OK | OK 50/HOUR - 49 later
the same override: OK | OK 50/HOUR - 48 later
with metadata: OK | OK 100/YEAR - 98 later
metadata: ['descriptors', 'domain', 'metadata']
no domain: INVALID_ARGUMENT: domain is empty; send that of a file of limits, or the name of a policy
no descriptors: INVALID_ARGUMENT: descriptors is empty; send at least one
no message: INTERNAL
no method: UNIMPLEMENTED
no service: UNIMPLEMENTED
as before: OK | OK 3/YEAR per-user 3 0s
health of '': SERVING
health of 'ratelimit': SERVING
health of 'envoy.service.ratelimit.v3.RateLimitService': SERVING
health of another: NOT_FOUND
watched: SERVING
reflection v1: True True True
reflection v1alpha: True True True
at once: 500
no token: UNAUTHENTICATED
another: UNAUTHENTICATED
the token: OK
";

#[test]
fn python_client_gets_the_expected_responses() {
    let Some(mut python) = ClientKind::Python.command() else { return };
    let start = |more| {
        let files = [("tollgate.yaml", &*format!("{CONFIG}{more}")), ("rules.yaml", RULES)];
        Daemon::with_listener("--grpc", &files)
    };
    let (daemon, guarded) = (start(""), start(TOKENS));
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rls/clients/rls.py"));
    python.args([&daemon.port().to_string(), &guarded.port().to_string(), SECRET]);
    check_lines(&printed(python, b""), EXPECTED);
}
