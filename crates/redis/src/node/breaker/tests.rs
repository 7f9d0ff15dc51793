use super::*;

const BUDGET: Duration = Duration::from_millis(15);

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many calls end that were sent at this time.
    InTime(u32, u64),
    Late(u32, u64),
    Compensated(u32, u64),
    Failed(u32, u64),
    /// A call that was sent at this time has been in flight for its stall time.
    Stall(u64),
    Connected,
    /// The probe is answered in time, or not.
    Probe(bool),
    /// So many of 20 requests pass.
    Admits(u32),
    /// Nothing but the time.
    Tick,
}

use Event::{Admits, Compensated, Connected, Failed, InTime, Late, Probe, Stall, Tick};

/// What to do next; times are those of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Closed,
    Probe,
    Until(u64),
    Reply,
}

use Next::{Closed, Reply, Until};

/// Runs events at times in ms, each with what is to do afterwards.
#[track_caller]
fn run(rows: &[(u64, Event, Next)]) -> Breaker {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut breaker = Breaker::new(start);
    let failure = Failure::new(FailureKind::OutOfMemory, "OOM");
    for (number, (ms, event, expected)) in rows.iter().enumerate() {
        let (now, jitter) = (at(*ms), Jitter::HALF);
        let mut end = |count: u32, sent: u64, outcome: Outcome<'_>| {
            let is_answered = !matches!(outcome, Outcome::Failed(_));
            let budget = (!matches!(event, Compensated(..))).then_some(BUDGET);
            let sent = at(sent);
            let call = EndedCall { sent, outcome, is_answered, budget };
            (0..count).for_each(|_| breaker.record_call(call, now, || jitter));
        };
        match *event {
            InTime(count, sent) => end(count, sent, Outcome::InTime),
            Compensated(count, sent) => end(count, sent, Outcome::InTime),
            Late(count, sent) => end(count, sent, Outcome::Late),
            Failed(count, sent) => end(count, sent, Outcome::Failed(&failure)),
            Stall(sent) => breaker.record_stall(at(sent), BUDGET, now, jitter),
            Connected => breaker.record_connection(now),
            Probe(is_answered) => breaker.record_probe(is_answered, now, jitter),
            Admits(expected) => {
                let admitted = (0..20).filter(|_| breaker.admit()).count();
                assert_eq!(admitted, usize::try_from(expected).unwrap(), "row {number}");
            }
            Tick => {}
        }
        let next = match breaker.step(now) {
            Step::Done => Closed,
            Step::Probe(threshold) => {
                assert_eq!(threshold, BUDGET, "row {number}");
                Next::Probe
            }
            Step::Wait(None) => Reply,
            Step::Wait(Some(until)) => Until(u64::try_from((until - start).as_millis()).unwrap()),
        };
        assert_eq!(next, *expected, "row {number}: {ms} {event:?}");
    }
    breaker
}

#[test]
fn half_of_the_calls_fail_or_four_fifths_are_late() {
    for (rows, expected) in [
        // Fewer than 20 calls say nothing.
        (&[(0, Failed(19, 0))][..], Closed),
        (&[(0, Failed(20, 0))], Until(250)),
        (&[(0, InTime(21, 0)), (0, Failed(20, 0))], Closed),
        (&[(0, InTime(20, 0)), (0, Failed(20, 0))], Until(250)),
        (&[(0, InTime(5, 0)), (0, Late(19, 0))], Closed),
        (&[(0, InTime(5, 0)), (0, Late(20, 0))], Until(250)),
        // A call that takes back charges says nothing.
        (&[(0, Compensated(20, 0)), (0, Late(20, 0))], Until(250)),
        (&[(0, InTime(5, 0)), (0, Failed(4, 0)), (0, Late(16, 0))], Until(250)),
        // Only the last second counts.
        (&[(0, InTime(50, 0)), (950, Failed(20, 900))], Closed),
        (&[(0, InTime(50, 0)), (1_000, Failed(20, 900))], Until(1_250)),
        (&[(0, Failed(19, 0)), (1_000, Failed(19, 900))], Closed),
        (&[(0, Failed(10, 0)), (900, Failed(10, 900))], Until(1_150)),
        (&[(0, InTime(50, 0)), (60_000, Failed(20, 60_000))], Until(60_250)),
    ] {
        let last = rows.len() - 1;
        let rows: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(number, (ms, event))| {
                (*ms, *event, if number == last { expected } else { Closed })
            })
            .collect();
        let breaker = run(&rows);
        assert_eq!(breaker.opened(), u64::from(expected != Closed), "{rows:?}");
    }
}

#[test]
fn a_stall_opens_it_unless_the_server_has_replied_since() {
    run(&[(30, Stall(0), Until(280)), (31, Admits(0), Until(280))]);
    run(&[(10, InTime(1, 5), Closed), (30, Stall(0), Closed)]);
    // The reply that made place for the call is not a reply since.
    run(&[(10, InTime(1, 5), Closed), (40, Stall(10), Until(290))]);
    // A late reply is a reply.
    run(&[(29, Late(1, 0), Closed), (30, Stall(0), Closed)]);
    assert_eq!(Breaker::stall_time(BUDGET), 2 * BUDGET);
    assert_eq!(Breaker::stall_time(Duration::ZERO), 2 * MIN_THRESHOLD);
}

#[test]
fn the_cool_down_doubles_with_each_failed_probe() {
    run(&[
        (0, Failed(20, 0), Until(250)),
        (249, Tick, Until(250)),
        (250, Tick, Next::Probe),
        (251, Admits(0), Reply),
        (265, Probe(false), Until(765)),
        (765, Tick, Next::Probe),
        (780, Probe(false), Until(1_780)),
        (1_780, Tick, Next::Probe),
        (1_795, Probe(false), Until(2_795)),
    ]);
    for (jitter, cool_down) in [(Jitter::MIN, 200), (Jitter::HALF, 250), (Jitter::MAX, 300)] {
        let start = Instant::now();
        let mut breaker = Breaker::new(start);
        breaker.record_stall(start, BUDGET, start, jitter);
        let until = start + Duration::from_millis(cool_down);
        assert_eq!(breaker.step(start), Step::Wait(Some(until)));
    }
}

#[test]
fn it_closes_step_by_step_by_time_or_by_calls_in_time() {
    let breaker = run(&[
        (0, Failed(20, 0), Until(250)),
        (250, Tick, Next::Probe),
        (251, Probe(true), Until(351)),
        (251, Admits(2), Until(351)),
        (351, Admits(2), Until(451)),
        (352, Admits(5), Until(451)),
        (451, Admits(5), Until(551)),
        (452, Admits(10), Until(551)),
        (551, Tick, Closed),
        (552, Admits(20), Closed),
    ]);
    let stats = breaker.stats(Instant::now());
    assert_eq!((stats.state, stats.opened, stats.rejected), (BreakerState::Closed, 1, 76));
    assert_eq!(stats.last_opening, Some(Duration::from_millis(551)));
    assert_eq!(&*stats.cause, "20 of 20 calls within a second failed: OOM");
    run(&[
        (0, Failed(20, 0), Until(250)),
        (250, Tick, Next::Probe),
        (251, Probe(true), Until(351)),
        // Calls that were sent before do not count.
        (252, InTime(100, 250), Until(351)),
        (252, Failed(100, 250), Until(351)),
        (260, InTime(19, 251), Until(351)),
        (261, InTime(1, 251), Until(361)),
        (261, Admits(5), Until(361)),
        (270, InTime(40, 261), Closed),
    ]);
}

#[test]
fn calls_that_fail_while_it_closes_open_it_with_a_longer_cool_down() {
    let breaker = run(&[
        (0, Failed(20, 0), Until(250)),
        (250, Tick, Next::Probe),
        (251, Probe(true), Until(351)),
        (260, Failed(4, 255), Until(351)),
        (261, Failed(1, 255), Until(761)),
        (761, Tick, Next::Probe),
        (762, Probe(true), Until(862)),
        (800, Stall(765), Until(1_800)),
        (1_800, Tick, Next::Probe),
        (1_801, Probe(true), Until(1_901)),
        (1_901, Tick, Until(2_001)),
        (2_001, Tick, Until(2_101)),
        (2_101, Tick, Closed),
        // After it was closed, the cool-down is the first again.
        (3_000, Failed(20, 2_900), Until(3_250)),
    ]);
    assert_eq!(breaker.opened(), 2);
}

#[test]
fn the_end_of_a_stall_is_probed_at_once_and_a_short_one_ends_it() {
    run(&[
        (30, Stall(0), Until(280)),
        (100, Late(1, 0), Next::Probe),
        // Replies that the same stall delayed are no reason to open it again.
        (101, Probe(true), Closed),
        (102, Late(100, 5), Closed),
        (102, Admits(20), Closed),
    ]);
    // A server that replies, but too late, is probed at once only the first time.
    run(&[
        (30, Stall(0), Until(280)),
        (100, Late(1, 0), Next::Probe),
        (115, Probe(false), Until(615)),
        (120, Late(1, 0), Until(615)),
    ]);
    // A long one is closed step by step.
    run(&[
        (30, Stall(0), Until(280)),
        (280, Tick, Next::Probe),
        (295, Probe(false), Until(795)),
        (400, Late(1, 0), Next::Probe),
        (401, Probe(true), Until(501)),
    ]);
    // It ends while a probe is in flight.
    run(&[
        (30, Stall(0), Until(280)),
        (280, Tick, Next::Probe),
        (294, Late(4, 0), Reply),
        (295, Probe(false), Next::Probe),
        (296, Probe(true), Until(396)),
    ]);
    // It opened for another reason.
    run(&[(0, Failed(20, 0), Until(250)), (10, Late(1, 0), Until(250))]);
}

#[test]
fn a_new_connection_is_probed_at_once() {
    run(&[
        (30, Stall(0), Until(280)),
        (90, Failed(100, 0), Until(280)),
        (100, Connected, Next::Probe),
        (101, Probe(true), Closed),
    ]);
    run(&[(0, Connected, Closed)]);
}

#[test]
fn errors_that_concern_the_request_are_no_failures() {
    use FailureKind::{
        CrossSlot, NoPermission, Overloaded, Rejected, TryAgain, UnknownCommand,
        VerificationFailed, WrongPassword, WrongTopology,
    };
    for kind in [
        CrossSlot,
        NoPermission,
        Overloaded,
        Rejected,
        TryAgain,
        UnknownCommand,
        VerificationFailed,
        WrongPassword,
        WrongTopology,
    ] {
        assert!(!is_unable(kind), "{kind:?}");
    }
    assert!(is_unable(FailureKind::OutOfMemory));
}
