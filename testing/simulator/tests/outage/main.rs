//! Limiters of several processes while their store fails: every decision is made within its deadline,
//! the shares of the processes add up to each limit, and what they admit is charged afterwards, once.
//!
//! `cargo xtask simulate --seeds 10000` runs that many seeds, `--seed 7` only that one.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

mod bounds;
mod coverage;
mod traffic;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use tollgate_simulator::{Client, Data, Partition, Refusal, ReplyFault, Server, Simulation, World};

use bounds::Overshoot;
use coverage::Coverage;
use traffic::{Process, Trace};

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TOLLGATE_SEEDS").unwrap_or(60),
    }
}

/// Runs a test with every seed; returns the results.
fn run_seeds<T>(test: impl AsyncFn(World) -> T + std::panic::RefUnwindSafe) -> Vec<T> {
    let run = |seed| {
        let run = std::panic::catch_unwind(|| Simulation::new(seed).run(&test));
        let repeat = format!("repeat it with `cargo xtask simulate --seed {seed}`");
        run.unwrap_or_else(|_| panic!("seed {seed} failed; {repeat}"))
    };
    seeds().map(run).collect()
}

/// A fault of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Crash,
    Pause,
    Partition,
    /// Replies are lost, and requests are not.
    LostReplies,
    /// Each call takes 500 ms.
    Slow,
    OutOfMemory,
    /// The links of some processes fail.
    IsolatedProcesses,
}

impl Fault {
    const ALL: [Fault; 7] = [
        Fault::Crash,
        Fault::Pause,
        Fault::Partition,
        Fault::LostReplies,
        Fault::Slow,
        Fault::OutOfMemory,
        Fault::IsolatedProcesses,
    ];

    fn begin(self, server: &Server, isolated: &[Client]) {
        match self {
            Fault::Crash => server.crash(Data::Kept),
            Fault::Pause => server.pause(),
            Fault::Partition => server.links().partition(Partition::Both),
            Fault::LostReplies => server.links().partition(Partition::ToClient),
            Fault::Slow => server.set_execution_time(Duration::from_millis(500)),
            Fault::OutOfMemory => server.set_refusal(Some(Refusal::OutOfMemory)),
            Fault::IsolatedProcesses => {
                isolated.iter().for_each(|client| client.links().partition(Partition::Both));
            }
        }
    }

    fn end(self, server: &Server, isolated: &[Client]) {
        match self {
            Fault::Crash => server.restart(Duration::from_millis(20)),
            Fault::Pause => server.resume(),
            Fault::Partition | Fault::LostReplies => server.links().unblock(),
            Fault::Slow => server.set_execution_time(Duration::ZERO),
            Fault::OutOfMemory => server.set_refusal(None),
            Fault::IsolatedProcesses => isolated.iter().for_each(|client| client.links().unblock()),
        }
    }
}

/// Returns the fault, the trace of all decisions and how far it exceeded the limits.
async fn run(world: World) -> (Fault, Trace, Overshoot) {
    let mut rng = world.rng();
    let fault = Fault::ALL[rng.usize(..Fault::ALL.len())];
    let server = world.start_server();
    let clock = traffic::start_clock(&world);
    world.links().set_latency(Duration::from_micros(200), Duration::from_millis(1));
    let count = rng.usize(1..=8);
    let mut processes = Vec::new();
    for _ in 0..count {
        processes.push(Process::start(&world, &server, &clock).await);
        tokio::time::sleep(Duration::from_millis(rng.u64(0..700))).await;
    }
    // Every process has a share.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let isolated: Vec<_> = processes.iter().take(count / 3).map(|p| p.client().clone()).collect();
    let traffic = traffic::start(&world, &processes, rng.u8(..3) == 0);
    tokio::time::sleep(Duration::from_millis(rng.u64(0..8_000))).await;
    let began_at = world.now_micros();
    for _ in 0..rng.usize(0..3) {
        // The store fails again soon after the processes have charged it.
        fault.begin(&server, &isolated);
        tokio::time::sleep(Duration::from_millis(rng.u64(100..3_000))).await;
        fault.end(&server, &isolated);
        tokio::time::sleep(Duration::from_millis(rng.u64(100..3_000))).await;
    }
    fault.begin(&server, &isolated);
    tokio::time::sleep(Duration::from_millis(rng.u64(100..20_000))).await;
    fault.end(&server, &isolated);
    let ended_at = world.now_micros();
    let loses_replies = rng.bool();
    if loses_replies {
        // Replies to charges are lost.
        (0..8).for_each(|_| server.fail_reply(ReplyFault::Cut));
    }
    let mut settled_at = ended_at;
    for _ in 0..1_200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if processes.iter().any(|process| process.limiter().stats().pending_keys > 0) {
            settled_at = world.now_micros();
        }
    }
    // At most two attempts to connect, a second or so apart, and the steps of the circuit breaker.
    assert!(loses_replies || settled_at - ended_at < 3_000_000, "{fault:?}: settled too late");
    server.clear_reply_faults();
    let trace = traffic.stop(began_at, settled_at, loses_replies).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    for process in &processes {
        let stats = process.limiter().stats();
        assert_eq!(stats.pending_keys, 0, "{fault:?}: every key was charged");
        assert_eq!(stats.not_charged_back, 0, "{fault:?}");
    }
    trace.check_charges(&processes).await;
    let isolated =
        u64::try_from(isolated.len()).unwrap() * u64::from(fault == Fault::IsolatedProcesses);
    let overshoot = bounds::check(&trace, isolated, u64::try_from(count).unwrap());
    (fault, trace, overshoot)
}

#[test]
fn shares_add_up_to_the_limits_and_are_charged_once() {
    let mut worst = BTreeMap::<Fault, (Overshoot, usize)>::new();
    let mut coverage = Coverage::default();
    for (fault, trace, overshoot) in run_seeds(run) {
        let (sum, count) = worst.entry(fault).or_default();
        sum.merge(overshoot);
        *count += 1;
        coverage.add(fault, &trace);
    }
    for (fault, (overshoot, seeds)) in &worst {
        println!("{fault:?}: {seeds} seeds, {overshoot}");
    }
    println!("{coverage}");
    if seeds().count() > 1 {
        coverage.assert_states();
    }
}

/// A process that starts during an outage has no share; the others keep theirs.
#[test]
fn a_process_that_the_store_does_not_know_denies() {
    Simulation::new(1).run(async |world: World| {
        let server = world.start_server();
        let clock = traffic::start_clock(&world);
        let first = Process::start(&world, &server, &clock).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.crash(Data::Kept);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let second = Process::start(&world, &server, &clock).await;
        assert_eq!(second.limiter().stats().members, None);
        assert!(second.limiter().stats().membership_failure.is_some());
        assert!(first.is_admitted(0, 0).await);
        assert!(!second.is_admitted(0, 0).await);
        server.restart(Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let members = |process: &Process| process.limiter().stats().members;
        assert_eq!((members(&first), members(&second)), (Some(2), Some(2)));
        assert!(second.is_admitted(0, 0).await);
    });
}

/// A process that leaves gives its shares to the others at once.
#[test]
fn a_process_that_leaves_has_charged_the_store() {
    Simulation::new(2).run(async |world: World| {
        let server = world.start_server();
        let clock = traffic::start_clock(&world);
        let first = Process::start(&world, &server, &clock).await;
        let second = Process::start(&world, &server, &clock).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.crash(Data::Kept);
        for _ in 0..20 {
            first.is_admitted(0, 0).await;
        }
        let failure = first.limiter().leave(Duration::from_millis(100)).await.unwrap_err();
        assert!(failure.to_string().contains("1 keys could not be charged"), "{failure}");
        // The server returns while the process leaves.
        let recovery = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            server.restart(Duration::ZERO);
        };
        let (left, ()) = tokio::join!(first.limiter().leave(Duration::from_secs(2)), recovery);
        left.unwrap();
        assert_eq!(first.limiter().stats().charged_back, 10);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(second.limiter().stats().members, Some(1));
    });
}
