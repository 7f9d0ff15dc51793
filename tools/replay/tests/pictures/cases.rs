//! Reports of unusual logs.

use tollgate_replay::report::Report;

use crate::samples::{NOW, SECOND, SampleRequest, edge_burst, hostile, report, two_days, waves};

const DAY: u64 = 86_400 * SECOND;
const WAVES: &[&str] = &["1/s", "10/min fixed", "5/s fixed; 60/h sliding by 1m"];
const EDGE: &[&str] = &["100/min", "100/min fixed", "100/min sliding", "100/min log"];
/// One of each algorithm.
const KINDS: &[&str] = &[
    "100/min",
    "100/min fixed",
    "100/min fixed from-first",
    "100/min log",
    "100/min sliding",
    "100/min sliding by 10s",
    "100/min queue 20",
    "20 concurrent lease 10s",
];

/// Reports of unusual logs, with names.
pub(crate) fn reports() -> Vec<(&'static str, Report)> {
    let one = edge_burst().into_iter().take(1).collect::<Vec<_>>();
    let same_time: Vec<_> =
        edge_burst().into_iter().map(|request| SampleRequest { time: NOW, ..request }).collect();
    let expensive: Vec<_> =
        waves().into_iter().map(|wave| SampleRequest { cost: 100, ..wave }).collect();
    let years = (0..2_000).map(|at| SampleRequest { time: NOW + at * 2 * DAY, ..one[0].clone() });
    let limits = "5/s; 60/min fixed; 600/h sliding by 1m; 9000/d; 20000/7d fixed; 100000/30d log";
    let mut long = report(&edge_burst(), SECOND, &["100/min", "100/min fixed"]);
    for (outcome, letter) in long.outcomes.iter_mut().zip(["W", "日"]) {
        outcome.name = letter.repeat(300);
    }
    vec![
        ("long", long),
        ("empty", report(&[], SECOND, &["10/s"])),
        ("no-limit", report(&waves(), SECOND, &[])),
        ("one", report(&one, SECOND, &["10/s"])),
        ("one-bin", report(&same_time, SECOND, &["10/s", "100/min fixed"])),
        ("denied", report(&expensive, SECOND, &["10/s", "99/min fixed"])),
        ("years", report(&years.collect::<Vec<_>>(), DAY, &["10/w fixed", "10/30d"])),
        ("many", report(&edge_burst(), SECOND, &["100/min fixed"; 20])),
        ("limits", report(&waves(), SECOND, &[limits, "10/s"])),
        ("days", report(&two_days(), 60 * SECOND, &["500/d fixed", "100/6h fixed", "30/h"])),
        ("waves", report(&waves(), SECOND, WAVES)),
        ("edge", report(&edge_burst(), SECOND / 10, EDGE)),
        ("kinds", report(&edge_burst(), SECOND / 10, KINDS)),
        ("hostile", hostile()),
    ]
}
