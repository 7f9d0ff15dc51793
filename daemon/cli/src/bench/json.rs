//! The result for programs: one object. Times are whole numbers and say their units.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tollgate_load::{Ended, Held, LimitedBy, Outcome, Plan, Target};

pub(super) fn object(plan: &Plan, it: &Outcome) -> String {
    let (field, text) = match &plan.question.limited_by {
        LimitedBy::Policy(name) => ("policy", name),
        LimitedBy::Limits(text) => ("limit", text),
    };
    let ended = match it.ended {
        Ended::Finished => "finished",
        Ended::Interrupted => "interrupted",
        Ended::Gone => "gone",
    };
    let counts: BTreeMap<&str, u64> =
        it.errors.iter().map(|error| (error.kind.as_str(), error.count)).collect();
    let firsts: BTreeMap<&str, &str> =
        it.errors.iter().map(|error| (error.kind.as_str(), &*error.first)).collect();
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| all.insert(name.to_owned(), value);
    put("target", json!(target(plan)));
    put("address", json!(plan.target.peer().map(tollgate_load::Peer::address)));
    put(field, json!(text));
    put("ended", json!(ended));
    put("elapsed_us", json!(micros(it.elapsed)));
    put("sent", json!(it.sent));
    put("answers", json!(it.answered()));
    put("answers_per_second", json!(it.answered_per_second()));
    put("allowed", json!(it.answers.allowed));
    put("denied", json!(it.answers.denied));
    put("degraded", json!({ "allowed": it.degraded.allowed, "denied": it.degraded.denied }));
    put("errors", json!(counts));
    put("first_errors", json!(firsts));
    put("rate", rate(plan, it));
    put("latency_ns", latency(it));
    put("generator", generator(it));
    put("verify", it.held.as_ref().map_or(Value::Null, |x| verify(plan, x)));
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

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn rate(plan: &Plan, it: &Outcome) -> Value {
    plan.load.rate.map_or(Value::Null, |asked| {
        let unsent = it.due.saturating_sub(it.sent);
        json!({ "asked_per_second": asked, "due": it.due, "unsent": unsent })
    })
}

fn latency(it: &Outcome) -> Value {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let latency = &it.latency;
    json!({
        "p50": nanos(latency.p50), "p90": nanos(latency.p90), "p99": nanos(latency.p99), "p99.9": nanos(latency.p999),
        "max": nanos(latency.max)
    })
}

fn generator(it: &Outcome) -> Value {
    let generator = &it.generator;
    json!({
        "threads": generator.threads,
        "cpu_us": micros(generator.cpu),
        "busiest_per_mille": generator.busiest,
        "may_be_the_limit": generator.is_limit(),
    })
}

fn verify(plan: &Plan, held: &Held) -> Value {
    let texts = |limits: &[tollgate::Limit]| {
        limits.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let worst = held.verdict.worst.iter().map(|worst| {
        let number = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        json!({
            "key": plan.keys.name(worst.key), "limit": worst.limit.to_string(), "from_us": worst.from,
            "to_us": worst.to, "admitted": number(worst.admitted), "bound": number(worst.bound)
        })
    });
    json!({
        "limits": texts(&held.limits),
        "without_bound": texts(&held.unheld),
        "by_store_time": held.by_store_time,
        "admissions": held.verdict.admissions,
        "not_kept": held.unkept,
        "violations": held.verdict.violations,
        "worst": worst.collect::<Vec<Value>>(),
    })
}
