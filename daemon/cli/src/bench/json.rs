//! The report as one JSON object. Times are whole numbers, with the unit in their name.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tollgate_load::{EndReason, Endpoint, LimitedBy, Outcome, Plan, Target, Verification};

pub(super) fn report(plan: &Plan, outcome: &Outcome) -> String {
    let (field, text) = match &plan.check.limited_by {
        LimitedBy::Policy(name) => ("policy", name),
        LimitedBy::Limits(text) => ("limit", text),
    };
    let ended = match outcome.end {
        EndReason::Finished => "finished",
        EndReason::Interrupted => "interrupted",
        EndReason::TargetGone => "gone",
    };
    let counts: BTreeMap<&str, u64> =
        outcome.errors.iter().map(|error| (error.kind.as_str(), error.count)).collect();
    let firsts: BTreeMap<&str, &str> =
        outcome.errors.iter().map(|error| (error.kind.as_str(), &*error.first)).collect();
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| all.insert(name.to_owned(), value);
    put("target", json!(target(plan)));
    put("address", json!(plan.target.endpoint().map(Endpoint::address)));
    put(field, json!(text));
    put("ended", json!(ended));
    put("elapsed_us", json!(micros(outcome.elapsed)));
    put("sent", json!(outcome.sent));
    put("answers", json!(outcome.responses()));
    put("answers_per_second", json!(outcome.responses_per_second()));
    put("allowed", json!(outcome.decisions.allowed));
    put("denied", json!(outcome.decisions.denied));
    put(
        "degraded",
        json!({ "allowed": outcome.degraded.allowed, "denied": outcome.degraded.denied }),
    );
    put("errors", json!(counts));
    put("first_errors", json!(firsts));
    put("rate", rate(plan, outcome));
    put("latency_ns", latency(outcome));
    put("generator", generator(outcome));
    put("verify", outcome.verification.as_ref().map_or(Value::Null, |found| verify(plan, found)));
    Value::Object(all).to_string()
}

fn target(plan: &Plan) -> &'static str {
    match &plan.target {
        Target::Http(_) => "http",
        Target::Grpc(_) => "grpc",
        Target::Resp(..) => "redis",
        Target::Memory => "memory",
    }
}

#[expect(clippy::expect_used, reason = "a run and its CPU time last days at most")]
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a duration below 584,000 years")
}

fn rate(plan: &Plan, outcome: &Outcome) -> Value {
    plan.load.rate.map_or(Value::Null, |rate| {
        let unsent = outcome.due.saturating_sub(outcome.sent);
        json!({ "asked_per_second": rate, "due": outcome.due, "unsent": unsent })
    })
}

#[expect(clippy::expect_used, reason = "the histogram measures at most an hour")]
fn latency(outcome: &Outcome) -> Value {
    let nanos = |latency: Duration| u64::try_from(latency.as_nanos()).expect("at most an hour");
    let latency = &outcome.latency;
    json!({
        "p50": nanos(latency.p50),
        "p90": nanos(latency.p90),
        "p99": nanos(latency.p99),
        "p99.9": nanos(latency.p999),
        "max": nanos(latency.max),
    })
}

fn generator(outcome: &Outcome) -> Value {
    let generator = &outcome.generator;
    json!({
        "threads": generator.threads,
        "cpu_us": micros(generator.cpu),
        "busiest_per_mille": generator.busiest,
        "may_be_the_limit": generator.is_bottleneck(),
    })
}

fn verify(plan: &Plan, verification: &Verification) -> Value {
    let texts = |limits: &[tollgate::Limit]| {
        limits.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let worst = verification.verdict.worst.iter().map(|worst| {
        // JSON numbers end at 64 bits; larger costs saturate.
        let number = |cost: u128| u64::try_from(cost).unwrap_or(u64::MAX);
        json!({
            "key": plan.keys.name(worst.key), "limit": worst.limit.to_string(), "from_us": worst.from,
            "to_us": worst.to, "admitted": number(worst.admitted), "bound": number(worst.bound)
        })
    });
    json!({
        "limits": texts(&verification.limits),
        "without_bound": texts(&verification.unverifiable),
        "by_store_time": verification.by_store_time,
        "admissions": verification.verdict.admissions,
        "not_kept": verification.dropped,
        "violations": verification.verdict.violations,
        "worst": worst.collect::<Vec<Value>>(),
    })
}
