//! Who stops a replay has what was found until then.

use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_replay::generate::Traffic;
use tollgate_replay::{Progress, Replay, ReplayError};

use crate::asking::{ByKey, alternatives, log, options};

#[test]
fn a_stop_leaves_what_was_found_until_then() {
    let traffic: Traffic = "poisson rate 100000/s for 1d keys 100".parse().unwrap();
    let (stop, alternatives) = (AtomicBool::new(false), alternatives(&["10/s"]));
    let mut seen = Progress::default();
    let mut progress = |progress: Progress| {
        seen = progress;
        stop.store(true, Ordering::Relaxed);
    };
    let replay = Replay {
        alternatives: &alternatives,
        options: options(2),
        stop: &stop,
        progress: &mut progress,
    };
    let report = replay.generated(&traffic, "poisson".to_owned()).unwrap();
    assert!(report.source.interrupted);
    assert_eq!(report.offered.requests, seen.lines);
    let outcome = &report.outcomes[0];
    assert_eq!(outcome.admitted.requests + outcome.denied.requests, seen.lines);
}

#[test]
fn the_first_broken_line_ends_a_strict_replay() {
    let (stop, alternatives) = (AtomicBool::new(false), alternatives(&["10/s"]));
    let text = "time,key\n1,a\nx,a\n2,b\ny,c\n";
    let options = tollgate_replay::Options { strict: true, ..options(2) };
    let replay =
        Replay { alternatives: &alternatives, options, stop: &stop, progress: &mut |_| {} };
    match replay.by_key(log(text.to_owned()), &ByKey) {
        Err(ReplayError::Strict(strict)) => {
            assert_eq!((&*strict.name, strict.line, &*strict.text), ("log", 3, "x,a"));
        }
        other => panic!("{other:?}"),
    }
}
