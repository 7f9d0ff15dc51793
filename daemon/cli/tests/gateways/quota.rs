//! Envoy's rate limit quota filter: each Envoy decides by itself, and all together keep the limit
//! of the recipe, `100/s burst 100`.

use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
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

/// Checks that in no interval more was admitted than the limit does.
#[track_caller]
fn check_bound(admissions: Vec<Admission>) {
    assert_eq!(excess(admissions), 0);
}

/// The most requests above the limit in any interval. A request was decided at some time between its
/// beginning and its end.
fn excess(mut admissions: Vec<Admission>) -> u64 {
    const SECOND: u64 = 1_000_000;
    admissions.sort_by_key(|(_, received)| *received);
    let Some((first, _)) = admissions.iter().min().copied() else { return 0 };
    // Millionths of tokens, more than enough to subtract those of the whole test.
    let offset = u64::try_from(admissions.len()).unwrap() * SECOND + RATE * 1_000 * SECOND;
    let tokens = |time: Timestamp| RATE * time.duration_since(first).get();
    // The least of the earlier requests without the tokens until then.
    let (mut least, mut most) = (u64::MAX, 0);
    for (earlier, (sent, received)) in (0..).zip(&admissions) {
        least = least.min(offset + earlier * SECOND - tokens(*sent));
        let level = offset + (earlier + 1) * SECOND - tokens(*received);
        most = most.max(level.saturating_sub(least));
    }
    most.saturating_sub(BURST * SECOND).div_ceil(SECOND)
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
fn shares_follow_the_load_from_one_envoy_to_another() {
    let Some(store) = start_store() else { return };
    let setups = [(); 2].map(|()| start(&store, Options::default()));
    let clock = Clock::system();
    let begin = clock.now();
    // A report, the end of the other share, and an assignment later.
    let [moved, late, end] = [15, 35, 45].map(|span| begin.saturating_add(Micros::from_secs(span)));
    let admissions = thread::scope(|scope| {
        let [many, few] = [4, 200].map(Duration::from_millis);
        let loads = [(&setups[0], many, few), (&setups[1], few, many)];
        let threads = loads.map(|(setup, before, after)| {
            let clock = &clock;
            scope.spawn(move || {
                [load(setup, clock, before, moved), load(setup, clock, after, end)].concat()
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    let used = admissions[1].iter().filter(|(sent, _)| *sent >= late).count();
    println!("{used} of {} requests admitted", 10 * RATE);
    check_bound(admissions.concat());
    assert!(used >= 800, "{used} of 1,000");
}

#[test]
fn a_lower_limit_applies_before_the_next_report() {
    let Some(store) = start_store() else { return };
    let setup = start(&store, Options::default());
    let clock = Clock::system();
    let load_for = |millis| {
        let end = clock.now().saturating_add(Micros::from_millis(millis));
        load(&setup, &clock, Duration::from_millis(2), end).len()
    };
    load_for(12_000);
    let before = load_for(2_000);
    setup.daemon.edit("100/s burst 100", "10/s burst 10");
    // The daemon reads the file within a second.
    load_for(2_000);
    let after = load_for(2_000);
    println!("{before} and {after} requests admitted in two seconds");
    assert!(before >= 150 && (1..=30).contains(&after), "{before} and {after}");
}

#[test]
fn an_idle_bucket_is_abandoned_and_comes_back() {
    let Some(store) = start_store() else { return };
    let per_user = r#"user: { custom_value: { name: user, typed_config: { "@type": type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: x-user } } }"#;
    let gateway_edits = &[("app: { string_value: all }", per_user)];
    let setup = start(&store, Options { gateway_edits, ..Options::default() });
    let (idle, busy) = (["x-user: idle"], ["x-user: busy"]);
    let status = |user: &[&str]| setup.send(9, "GET /", user).status;
    let wait_for_share = |user: &[&str]| {
        let is_admitted = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            status(user) == 200
        });
        assert!(is_admitted, "{user:?} got no share");
    };
    for user in [&idle, &busy] {
        // Without a share, the first request is denied.
        assert_eq!(status(user), 429);
        wait_for_share(user);
    }
    // A minute without requests, two reports, and some more.
    for _ in 0..75 {
        thread::sleep(Duration::from_secs(1));
        assert_eq!(status(&busy), 200);
    }
    assert_eq!(status(&idle), 429);
    wait_for_share(&idle);
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

/// The other Envoy gets its share meanwhile. The one that was stopped finds an assignment that was sent
/// before, and applies it as if it were new.
#[test]
fn an_envoy_that_is_stopped_for_long_exceeds_the_limit_by_its_share_at_most() {
    let Some(store) = start_store() else { return };
    let setups = [(); 2].map(|()| start(&store, Options::default()));
    let stopped = Pid::from_raw(setups[0].gateway.pid().try_into().unwrap()).unwrap();
    let clock = Clock::system();
    let begin = clock.now();
    let [late, stop_end, end] =
        [46, 52, 62].map(|span| begin.saturating_add(Micros::from_secs(span)));
    let [first, other] = thread::scope(|scope| {
        let threads = setups.each_ref().map(|setup| {
            let clock = &clock;
            scope.spawn(move || load(setup, clock, Duration::from_millis(4), end))
        });
        thread::sleep(Duration::from_secs(12));
        kill_process(stopped, Signal::STOP).unwrap();
        thread::sleep(Duration::from_secs(40));
        kill_process(stopped, Signal::CONT).unwrap();
        threads.map(|thread| thread.join().unwrap())
    });
    let during = other.iter().filter(|(sent, _)| (late..stop_end).contains(sent)).count();
    let later = first.iter().filter(|(sent, _)| *sent > stop_end).count();
    let excess = excess([first, other].concat());
    println!("{excess} requests above the limit; the other had {during} of {}", 6 * RATE);
    println!("the first one admitted {later} after the stop");
    // Its tokens, and its rate as long as an assignment lasts: it has about half of both.
    assert!(excess <= (BURST + 10 * RATE) * 3 / 4, "{excess}");
    assert!(u64::try_from(during).unwrap() >= 6 * RATE * 7 / 10, "{during}");
    assert!(later > 0);
}
