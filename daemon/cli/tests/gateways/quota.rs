//! Envoy's rate limit quota filter: each Envoy decides by itself, and all together keep the limit
//! of the recipe, `100/s burst 100`.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tollgate::{Micros, Timestamp};
use tollgate_state::Clock;
use tollgate_testkit::{GatewayKind, Server};

use crate::setup::{Filter, Options, SECRET, Setup};
use crate::tokens::TOKENS;

const RATE: u64 = 100;
const BURST: u64 = 100;

/// A store, if Envoy is installed.
fn start_store() -> Option<Server> {
    GatewayKind::Envoy.is_installed().then(Server::start)
}

/// An Envoy and a daemon on this store.
fn start(store: &Server, options: Options<'_>) -> Setup {
    let more = format!("store: {{ url: '{}', deadline: 2s }}\n", store.url());
    let options = Options { filter: Filter::Quota, more: &more, ..options };
    Setup::with(GatewayKind::Envoy, options)
}

/// Sends requests until one has the status.
#[track_caller]
fn wait_for(setup: &Setup, status: u16) {
    let clock = Clock::system();
    let end = clock.now().saturating_add(Micros::from_secs(40));
    while setup.send(9, "GET /", &[]).status != status {
        assert!(clock.now() < end, "no response with {status}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The times at which an admitted request was sent, and its response received.
type Admission = (Timestamp, Timestamp);

/// Sends requests one after the other, with pauses between them.
fn load(setup: &Setup, clock: &Clock, pause: Duration, end: Timestamp) -> Vec<Admission> {
    let (mut client, mut admissions) = (setup.client(9), Vec::new());
    loop {
        let sent = clock.now();
        if sent >= end {
            return admissions;
        }
        if client.send("GET /", &[], "").status == 200 {
            admissions.push((sent, clock.now()));
        }
        thread::sleep(pause);
    }
}

/// Checks that in no interval more was admitted than the limit does. A request was decided at some
/// time between its beginning and its end.
#[track_caller]
fn check_bound(mut admissions: Vec<Admission>) {
    const SECOND: u64 = 1_000_000;
    admissions.sort_by_key(|(_, received)| *received);
    let Some((first, _)) = admissions.iter().min().copied() else { return };
    // Millionths of tokens, more than enough to subtract those of the whole test.
    let offset = u64::try_from(admissions.len()).unwrap() * SECOND + RATE * 1_000 * SECOND;
    let tokens = |time: Timestamp| RATE * time.duration_since(first).get();
    // The least of the earlier requests without the tokens until then.
    let mut least = u64::MAX;
    for (earlier, (sent, received)) in (0..).zip(&admissions) {
        least = least.min(offset + earlier * SECOND - tokens(*sent));
        let level = offset + (earlier + 1) * SECOND - tokens(*received);
        let level = level.saturating_sub(least);
        assert!(level <= BURST * SECOND, "{level} millionths at request {earlier}");
    }
}

#[test]
fn an_envoy_gets_the_limit_after_its_first_request() {
    let Some(store) = start_store() else { return };
    let setup = start(&store, Options::default());
    assert_eq!(setup.send(9, "GET /", &[]).status, 429);
    wait_for(&setup, 200);
}

#[test]
fn several_envoys_with_several_daemons_keep_the_limit_together() {
    let Some(store) = start_store() else { return };
    let setups = [(); 3].map(|()| start(&store, Options::default()));
    // Skewed loads, together far above the limit.
    let pauses = [2, 8, 20].map(Duration::from_millis);
    let clock = Clock::system();
    let begin = clock.now();
    let [steady, end] = [20, 40].map(|span| begin.saturating_add(Micros::from_secs(span)));
    let admissions = thread::scope(|scope| {
        let load = |(setup, pause)| {
            let clock = &clock;
            scope.spawn(move || load(setup, clock, pause, end))
        };
        let threads: Vec<_> = setups.iter().zip(pauses).map(load).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    // From the fourth report on.
    let used = admissions.iter().filter(|(sent, _)| *sent >= steady).count();
    let used = u64::try_from(used).unwrap();
    println!("{used} of {} requests admitted", 20 * RATE);
    check_bound(admissions);
    assert!(used >= 18 * RATE, "{used} of {}", 20 * RATE);
}

#[test]
fn an_assignment_ends_while_the_daemon_is_down() {
    let Some(store) = start_store() else { return };
    let mut setup = start(&store, Options::default());
    wait_for(&setup, 200);
    setup.daemon.kill();
    // It still applies.
    wait_for(&setup, 200);
    thread::sleep(Duration::from_secs(13));
    assert_eq!(setup.send(9, "GET /", &[]).status, 429);
    setup.daemon.restart();
    wait_for(&setup, 200);
}

#[test]
fn envoy_sends_its_token() {
    let Some(store) = start_store() else { return };
    let options = Options { edits: &[TOKENS], token: Some(SECRET), ..Options::default() };
    wait_for(&start(&store, options), 200);
    // Without it, no quota is assigned.
    let setup = start(&store, Options { edits: &[TOKENS], ..Options::default() });
    for _ in 0..20 {
        assert_eq!(setup.send(9, "GET /", &[]).status, 429);
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_share_of_an_envoy_that_was_killed_is_free_again() {
    let Some(store) = start_store() else { return };
    let (setup, other) = (start(&store, Options::default()), start(&store, Options::default()));
    let clock = Clock::system();
    let after = |span| clock.now().saturating_add(Micros::from_secs(span));
    let pause = Duration::from_millis(4);
    let end = after(15);
    thread::scope(|scope| {
        scope.spawn(|| load(&other, &clock, pause, end));
        load(&setup, &clock, pause, end);
    });
    drop(other);
    // Thirteen seconds, a report and an assignment.
    load(&setup, &clock, pause, after(25));
    let used = load(&setup, &clock, pause, after(10)).len();
    // Before, it had half.
    assert!(used >= 700, "{used} of 1,000");
}

#[test]
fn a_daemon_that_is_stopped_for_long_does_not_let_envoy_exceed_the_limit() {
    let Some(store) = start_store() else { return };
    let setup = start(&store, Options::default());
    wait_for(&setup, 200);
    let clock = Clock::system();
    let end = clock.now().saturating_add(Micros::from_secs(40));
    let admissions = thread::scope(|scope| {
        let admissions = scope.spawn(|| load(&setup, &clock, Duration::from_millis(2), end));
        thread::sleep(Duration::from_secs(5));
        setup.daemon.signal(Signal::STOP);
        thread::sleep(Duration::from_secs(20));
        setup.daemon.signal(Signal::CONT);
        admissions.join().unwrap()
    });
    let last = admissions.last().unwrap().0;
    assert!(end.duration_since(last) < Micros::from_secs(3), "it does not return");
    check_bound(admissions);
}
