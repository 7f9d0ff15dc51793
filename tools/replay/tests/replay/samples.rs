//! Reports of unusual logs.

use tollgate_replay::generate::Traffic;
use tollgate_replay::report::{Denial, InvalidLine, Outcome, Report};
use tollgate_replay::{Options, Replay};

use crate::harness::{Request, candidates, csv, log, options, replay, with_replay};

/// 2025-11-20 14:46:40 UTC.
pub(crate) const NOW: u64 = 1_763_650_000_000_000;
const SECOND: u64 = 1_000_000;

/// An hour of several hundred keys with different rates.
const WAVES: &str = "zipf rate 20/s for 1h keys 400";
/// Two days of some keys that are busy by day and quiet by night.
const DAYS: &str = "diurnal rate 1/20s for 2d keys 30";
/// One of each algorithm with a window.
const KINDS: &[&str] = &[
    "100/min",
    "100/min fixed",
    "100/min fixed from-first",
    "100/min log",
    "100/min sliding",
    "100/min sliding by 10s",
    "100/min queue 20",
];

/// Reports of unusual logs, with names.
pub(crate) fn reports() -> Vec<(&'static str, Report)> {
    let edge = edge_burst();
    let (mut same_time, mut expensive) = (edge.clone(), edge.clone());
    same_time.iter_mut().for_each(|request| request.at = NOW);
    expensive.iter_mut().for_each(|request| request.cost = 100);
    let years = (0..2_000).map(|at| Request::new(NOW + at * 172_800 * SECOND, "user:42"));
    let limits = "5/s; 60/min fixed; 600/h sliding by 1m; 9000/d; 20000/7d fixed; 100000/30d log";
    let mut long = report(&edge, &["100/min", "100/min fixed"]);
    for (outcome, letter) in long.outcomes.iter_mut().zip(["W", "日"]) {
        outcome.name = letter.repeat(300);
    }
    let mut kinds = report(&edge, KINDS);
    let concurrent = "20 concurrent lease 10s";
    kinds.outcomes.push(Outcome {
        name: concurrent.to_owned(),
        limits: vec![concurrent.parse().unwrap()],
        ..kinds.outcomes[0].clone()
    });
    vec![
        ("long", long),
        ("empty", report(&[], &["10/s"])),
        ("no-limit", synthetic(WAVES, &[])),
        ("one", report(&edge[..1], &["10/s"])),
        ("one-bin", report(&same_time, &["10/s", "100/min fixed"])),
        ("denied", report(&expensive, &["10/s", "99/min fixed"])),
        ("years", report(&years.collect::<Vec<_>>(), &["10/w fixed", "10/30d"])),
        ("many", report(&edge, &["100/min fixed"; 20])),
        ("limits", synthetic(WAVES, &[limits, "10/s"])),
        ("days", synthetic(DAYS, &["500/d fixed", "100/6h fixed", "30/h"])),
        ("waves", synthetic(WAVES, &["1/s", "10/min fixed", "5/s fixed; 60/h sliding by 1m"])),
        ("edge", report(&edge, &["100/min", "100/min fixed", "100/min sliding", "100/min log"])),
        ("kinds", kinds),
        ("hostile", hostile()),
    ]
}

/// One key with few requests, and ten times as many around the end of a minute.
pub(crate) fn edge_burst() -> Vec<Request> {
    let edge = (NOW / (60 * SECOND) + 1) * 60 * SECOND;
    let quiet = (0..30).map(|at| edge - 60 * SECOND + at * 4 * SECOND);
    let burst = (0..300).map(|at| edge - 6 * SECOND + at * SECOND / 25);
    let mut all: Vec<_> = quiet.chain(burst).map(|at| Request::new(at, "user:42")).collect();
    all.sort_by_key(|request| request.at);
    all
}

pub(crate) fn report(requests: &[Request], limits: &[&str]) -> Report {
    replay(&candidates(limits), suggesting(), log(csv(requests)))
}

fn synthetic(traffic: &str, limits: &[&str]) -> Report {
    let parsed: Traffic = traffic.parse().unwrap();
    let run = |replay: Replay<'_>| replay.synthetic(&parsed, traffic.to_owned());
    with_replay(&candidates(limits), suggesting(), run).unwrap()
}

fn suggesting() -> Options {
    Options { suggest: Some(1_000), ..options(2) }
}

/// A report with hostile names, keys and lines.
fn hostile() -> Report {
    const SCRIPT: &str = "</style></title><script>alert(1)</script><img src=x onerror='alert(2)'>";
    let hostile = |text: &str| format!("{SCRIPT}\" onload=\"{text}\u{202e}\u{1b}[31m\0&amp;]]>");
    let mut report = synthetic(WAVES, &["1/s", "100/min fixed"]);
    report.source.names = vec![hostile("name")];
    report.source.command = Some(hostile("command"));
    report.source.invalid = 2;
    report.source.invalid_samples = vec![InvalidLine {
        name: hostile("file"),
        line: 7,
        text: hostile("text"),
        reason: hostile("reason"),
    }];
    for outcome in &mut report.outcomes {
        outcome.name = hostile("outcome");
        for worst in &mut outcome.worst {
            worst.key = hostile("key").into_bytes();
            worst.key.push(0xff);
        }
        let key = hostile("denied").into_bytes();
        outcome.longest_denial =
            outcome.longest_denial.take().map(|denial| Denial { key, ..denial });
        assert!(outcome.longest_denial.is_some() && !outcome.worst.is_empty());
    }
    for peaks in &mut report.peaks {
        peaks.highest = peaks.highest.take().map(|(cost, _)| (cost, hostile("peak").into_bytes()));
    }
    report
}
