//! The result for people.

use std::fmt::Write;
use std::time::Duration;

use tollgate_load::{Ended, Held, LimitedBy, Outcome, Plan, Target};

use super::plan::MAX_HELD;
use crate::number::{counted, grouped, percent, time};

/// A line: what it is about, and what there is to say.
fn line(text: &mut String, name: &str, says: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "  {name:<10} {says}");
}

pub(super) fn table(plan: &Plan, it: &Outcome) -> String {
    let mut text = head(plan, it);
    let answered = it.answered();
    let rate = grouped(it.answered_per_second());
    line(&mut text, "answers", &format!("{}, {rate}/s", grouped(answered)));
    let share = |part: u64| format!("{}, {}", grouped(part), percent(part, answered));
    line(&mut text, "allowed", &share(it.answers.allowed));
    line(&mut text, "denied", &share(it.answers.denied));
    if it.degraded.all() > 0 {
        let (allowed, denied) = (grouped(it.degraded.allowed), grouped(it.degraded.denied));
        let says = format!("{allowed} allowed and {denied} denied while the store was away");
        line(&mut text, "degraded", &says);
    }
    for error in &it.errors {
        let says = format!("{} {}: {}", grouped(error.count), error.kind.as_str(), error.first);
        line(&mut text, "errors", &says);
    }
    rate_line(&mut text, plan, it);
    if answered > 0 {
        line(&mut text, "latency", &latency(it));
    }
    generator(&mut text, it);
    if let Some(held) = &it.held {
        verdict(&mut text, plan, held);
    }
    text
}

fn latency(it: &Outcome) -> String {
    let latency = &it.latency;
    let quantiles = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    quantiles.map(|(name, value)| format!("{name} {}", time(value))).join(", ")
}

fn head(plan: &Plan, it: &Outcome) -> String {
    let load = &plan.load;
    let whom = match &plan.target {
        Target::Http(http) => format!("http://{}", http.address()),
        Target::Grpc(grpc) => format!("grpc://{}", grpc.address()),
        Target::Resp(resp, _) => format!("redis://{}", resp.address()),
        Target::Memory => "memory".to_owned(),
    };
    let what = match &plan.question.limited_by {
        LimitedBy::Policy(name) => format!("policy {name}"),
        LimitedBy::Limits(text) => text.clone(),
    };
    let who = match plan.target {
        Target::Memory => counted(it.generator.threads, "thread"),
        _ if load.pipeline > 1 => {
            format!("{} of {}", counted(load.connections, "connection"), load.pipeline)
        }
        _ => counted(load.connections, "connection"),
    };
    let ended = match it.ended {
        Ended::Finished => "",
        Ended::Interrupted => ", interrupted",
        Ended::Gone => ", until nobody answered",
    };
    let keys = counted(usize::try_from(plan.keys.count).unwrap_or(usize::MAX), "key");
    format!("{whom}, {what}, {keys}, {who}, {}{ended}\n", time(it.elapsed))
}

fn rate_line(text: &mut String, plan: &Plan, it: &Outcome) {
    let Some(rate) = plan.load.rate else { return };
    let unsent = it.due.saturating_sub(it.sent);
    let asked = grouped(rate);
    let says = if unsent > 0 {
        let (unsent, due) = (grouped(unsent), grouped(it.due));
        format!("{asked}/s asked for and not kept up: {unsent} of {due} were due and never sent")
    } else {
        format!("{asked}/s asked for; all {} that were due were sent", grouped(it.due))
    };
    line(text, "rate", &says);
}

fn generator(text: &mut String, it: &Outcome) {
    let generator = &it.generator;
    let each = generator.cpu.as_nanos() / u128::from(it.answered().max(1));
    let each = Duration::from_nanos(u64::try_from(each).unwrap_or(u64::MAX));
    let mut says = format!(
        "{}, {} of CPU an answer, busy {}",
        counted(generator.threads, "thread"),
        time(each),
        percent(generator.busiest.min(1_000), 1_000)
    );
    if generator.is_limit() {
        says.push_str(": asking may be what limits it; raise --threads, or ask from more machines");
    }
    line(text, "generator", &says);
}

fn verdict(text: &mut String, plan: &Plan, held: &Held) {
    let limits: Vec<String> = held.limits.iter().map(ToString::to_string).collect();
    let verdict = &held.verdict;
    let says = if verdict.violations == 0 {
        let admissions = counted(verdict.admissions, "admission");
        format!("{admissions} within the bounds of {}", limits.join("; "))
    } else {
        let cases = counted(verdict.violations, "case");
        format!("VIOLATED in {cases}: more was admitted than {} can", limits.join("; "))
    };
    line(text, "verify", &says);
    for worst in &verdict.worst {
        let span = time(Duration::from_micros(worst.to.saturating_sub(worst.from)));
        let key = plan.keys.name(worst.key);
        let says = format!(
            "{key}: {} within {span} from {}.{:06}, at most {} by {}",
            worst.admitted,
            worst.from / 1_000_000,
            worst.from % 1_000_000,
            worst.bound,
            worst.limit
        );
        line(text, "", &says);
    }
    for limit in &held.unheld {
        line(text, "", &format!("of {limit} no bound is known by the caller's clock"));
    }
    if held.unkept > 0 {
        let (unkept, most) = (grouped(held.unkept), counted(MAX_HELD, "admission"));
        let says = format!(
            "{unkept} more than the {most} that are kept are not held against anything; ask for \
             less, or for a shorter time"
        );
        line(text, "", &says);
    }
}
