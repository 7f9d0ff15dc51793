//! The report as one JSON object. Times are whole numbers, with the unit in their name.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_load::{EndReason, Endpoint, LimitedBy, Outcome, Plan, Target, Verification};

pub(super) fn report(plan: &Plan, outcome: &Outcome) -> String {
    let (field, text) = match &plan.check.limited_by {
        LimitedBy::Policy(name) => ("policy", name),
        LimitedBy::Limits(text) => ("limit", text),
    };
    let errors = || outcome.errors.iter().map(|error| (error.kind.as_str(), error));
    let counts: BTreeMap<_, _> = errors().map(|(kind, error)| (kind, error.count)).collect();
    let firsts: BTreeMap<_, _> = errors().map(|(kind, error)| (kind, &error.first)).collect();
    let report = json!({
        "target": match &plan.target {
            Target::Http(_) => "http",
            Target::Grpc(_) => "grpc",
            Target::Resp(..) => "redis",
            Target::Memory => "memory",
        },
        "address": plan.target.endpoint().map(Endpoint::address),
        field: text,
        "ended": match outcome.end {
            EndReason::Finished => "finished",
            EndReason::Interrupted => "interrupted",
            EndReason::TargetGone => "gone",
        },
        "elapsed_us": micros(outcome.elapsed),
        "sent": outcome.sent,
        "answers": outcome.responses(),
        "answers_per_second": outcome.responses_per_second(),
        "allowed": outcome.decisions.allowed,
        "denied": outcome.decisions.denied,
        "degraded": { "allowed": outcome.degraded.allowed, "denied": outcome.degraded.denied },
        "errors": counts,
        "first_errors": firsts,
        "rate": plan.load.rate.map(|rate| rate_report(rate, outcome)),
        "latency_ns": latency(outcome),
        "generator": {
            "threads": outcome.generator.threads,
            "cpu_us": micros(outcome.generator.cpu),
            "busiest_per_mille": outcome.generator.busiest,
            "may_be_the_limit": outcome.generator.is_bottleneck(),
        },
        "verify": outcome.verification.as_ref().map(|found| verify(plan, found)),
    });
    report.to_string()
}

#[expect(clippy::expect_used, reason = "a run and its CPU time last days at most")]
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a duration below 584,000 years")
}

fn rate_report(rate: u64, outcome: &Outcome) -> Value {
    let unsent = outcome.due.saturating_sub(outcome.sent);
    json!({ "asked_per_second": rate, "due": outcome.due, "unsent": unsent })
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

fn verify(plan: &Plan, verification: &Verification) -> Value {
    let texts = |limits: &[tollgate::Limit]| {
        limits.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let worst = verification.verdict.worst.iter().map(|worst| {
        // JSON numbers end at 64 bits; larger costs saturate.
        let number = |cost: u128| u64::try_from(cost).unwrap_or(u64::MAX);
        json!({
            "key": plan.keys.name(worst.key),
            "limit": worst.limit.to_string(),
            "from_us": worst.from,
            "to_us": worst.to,
            "admitted": number(worst.admitted),
            "bound": number(worst.bound),
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
