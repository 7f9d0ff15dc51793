//! The report as text.

use std::fmt::Write;
use std::time::Duration;

use tollgate_load::{EndReason, LimitedBy, MAX_ADMISSIONS, Outcome, Plan, Target, Verification};

use crate::number::{counted, grouped, percent, time};

fn write_line(report: &mut String, name: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(report, "  {name:<10} {value}");
}

pub(super) fn report(plan: &Plan, outcome: &Outcome) -> String {
    let mut report = head(plan, outcome);
    let responses = outcome.responses();
    let rate = grouped(outcome.responses_per_second());
    write_line(&mut report, "responses", &format!("{}, {rate}/s", grouped(responses)));
    let share = |part: u64| format!("{}, {}", grouped(part), percent(part, responses));
    write_line(&mut report, "allowed", &share(outcome.decisions.allowed));
    write_line(&mut report, "denied", &share(outcome.decisions.denied));
    if outcome.degraded.total() > 0 {
        let [allowed, denied] = [outcome.degraded.allowed, outcome.degraded.denied].map(grouped);
        let value = format!("{allowed} allowed and {denied} denied without the store");
        write_line(&mut report, "degraded", &value);
    }
    for error in &outcome.errors {
        let value = format!("{} {}: {}", grouped(error.count), error.kind.as_str(), error.first);
        write_line(&mut report, "errors", &value);
    }
    write_rate(&mut report, plan, outcome);
    if responses > 0 {
        write_line(&mut report, "latency", &latency(outcome));
    }
    write_generator(&mut report, outcome);
    if let Some(verification) = &outcome.verification {
        write_verification(&mut report, plan, verification);
    }
    report
}

fn latency(outcome: &Outcome) -> String {
    let latency = &outcome.latency;
    let quantiles = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    quantiles.map(|(name, value)| format!("{name} {}", time(value))).join(", ")
}

fn head(plan: &Plan, outcome: &Outcome) -> String {
    let load = &plan.load;
    let target = match &plan.target {
        Target::Http(endpoint) => format!("http://{}", endpoint.address()),
        Target::Grpc(endpoint) => format!("grpc://{}", endpoint.address()),
        Target::Resp(endpoint, _) => format!("redis://{}", endpoint.address()),
        Target::Memory => "memory".to_owned(),
    };
    let limits = match &plan.check.limited_by {
        LimitedBy::Policy(name) => format!("policy {name}"),
        LimitedBy::Limits(text) => text.clone(),
    };
    let concurrency = match plan.target {
        Target::Memory => counted(outcome.generator.threads, "thread"),
        _ if load.pipeline > 1 => {
            format!("{} with {} in flight", counted(load.connections, "connection"), load.pipeline)
        }
        _ => counted(load.connections, "connection"),
    };
    let end = match outcome.end {
        EndReason::Finished => "",
        EndReason::Interrupted => ", interrupted",
        EndReason::TargetGone => ", until the target stopped responding",
    };
    let plural = if plan.keys.count == 1 { "" } else { "s" };
    let keys = format!("{} key{plural}", grouped(plan.keys.count));
    format!("{target}, {limits}, {keys}, {concurrency}, {}{end}\n", time(outcome.elapsed))
}

fn write_rate(report: &mut String, plan: &Plan, outcome: &Outcome) {
    let Some(rate) = plan.load.rate else { return };
    let (rate, due) = (grouped(rate), grouped(outcome.due));
    let unsent = outcome.due.saturating_sub(outcome.sent);
    let value = if unsent > 0 {
        format!("{rate}/s not reached: {} of {due} requests were never sent", grouped(unsent))
    } else {
        format!("{rate}/s reached: all {due} requests were sent")
    };
    write_line(report, "rate", &value);
}

#[expect(clippy::expect_used, reason = "the CPU time of a run is below 584 years")]
fn write_generator(report: &mut String, outcome: &Outcome) {
    let generator = &outcome.generator;
    let nanos = generator.cpu.as_nanos() / u128::from(outcome.responses().max(1));
    let per_response = Duration::from_nanos(u64::try_from(nanos).expect("a CPU time in ns"));
    let mut value = format!(
        "{}, {} of CPU per response, busy {}",
        counted(generator.threads, "thread"),
        time(per_response),
        percent(generator.busiest.min(1_000), 1_000)
    );
    if generator.is_bottleneck() {
        value.push_str(
            "; the generator may be the bottleneck: raise --threads, or use more machines",
        );
    }
    write_line(report, "generator", &value);
}

fn write_verification(report: &mut String, plan: &Plan, verification: &Verification) {
    let limits: Vec<String> = verification.limits.iter().map(ToString::to_string).collect();
    let limits = limits.join("; ");
    let verdict = &verification.verdict;
    let value = if verdict.violations == 0 {
        format!("{} within {limits}", counted(verdict.admissions, "admission"))
    } else {
        let cases = counted(verdict.violations, "case");
        format!("VIOLATION in {cases}: more was admitted than {limits} allows")
    };
    write_line(report, "verify", &value);
    for worst in &verdict.worst {
        let span = time(Duration::from_micros(worst.to.saturating_sub(worst.from)));
        let key = plan.keys.name(worst.key);
        let value = format!(
            "{key}: {} within {span} from {}.{:06}, at most {} by {}",
            worst.admitted,
            worst.from / 1_000_000,
            worst.from % 1_000_000,
            worst.bound,
            worst.limit
        );
        write_line(report, "", &value);
    }
    for limit in &verification.unverifiable {
        write_line(report, "", &format!("{limit} was not verified: the store's time is unknown"));
    }
    if verification.dropped > 0 {
        let value = format!(
            "{} admissions above the maximum of {} were not verified; send fewer requests, or for \
             a shorter time",
            grouped(verification.dropped),
            counted(MAX_ADMISSIONS, "admission")
        );
        write_line(report, "", &value);
    }
}
