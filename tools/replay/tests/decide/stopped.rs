//! Replays that end early.

use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_replay::generate::Traffic;
use tollgate_replay::{Progress, Replay, ReplayError};

use crate::harness::{KeyField, candidates, log, options};

#[test]
fn a_stopped_replay_reports_the_requests_until_then() {
    let traffic: Traffic = "poisson rate 100000/s for 1d keys 100".parse().unwrap();
    let (stop, candidates) = (AtomicBool::new(false), candidates(&["10/s"]));
    let mut seen = Progress::default();
    let mut progress = |progress: Progress| {
        seen = progress;
        stop.store(true, Ordering::Relaxed);
    };
    let replay = Replay {
        candidates: &candidates,
        options: options(2),
        stop: &stop,
        progress: &mut progress,
    };
    let report = replay.synthetic(&traffic, "poisson".to_owned()).unwrap();
    assert!(report.source.interrupted);
    assert_eq!(report.offered.requests, seen.lines);
    let outcome = &report.outcomes[0];
    assert_eq!(outcome.admitted.requests + outcome.denied.requests, seen.lines);
}

#[test]
fn the_first_invalid_line_ends_a_strict_replay() {
    let (stop, candidates) = (AtomicBool::new(false), candidates(&["10/s"]));
    let text = "time,key\n1,a\nx,a\n2,b\ny,c\n";
    let options = tollgate_replay::Options { strict: true, ..options(2) };
    let replay = Replay { candidates: &candidates, options, stop: &stop, progress: &mut |_| {} };
    match replay.parallel(log(text.to_owned()), &KeyField) {
        Err(ReplayError::Strict(strict)) => {
            assert_eq!((&*strict.name, strict.line, &*strict.text), ("log", 3, "x,a"));
        }
        other => panic!("{other:?}"),
    }
}
