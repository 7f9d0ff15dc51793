//! Faults of real stores under the load of several real daemons.
//!
//! Every scenario starts its own servers and daemons, sends checks of all kinds of limits, causes a
//! fault, ends it, and then asserts what `docs/reliability.md` promises: each request is answered, the
//! limits and the shares keep their bounds, the store was charged for what was admitted, and the
//! memory of the daemons does not grow.
//!
//! The tests run short scenarios. `cargo xtask chaos` runs them one after the other with the release
//! binary and prints the table of the page, `--long` with more processes, longer outages and more
//! failovers, and `UPDATE=1` writes the table into the page.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]
#![allow(
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::float_arithmetic,
    reason = "the tests measure times and ratios"
)]

mod bounds;
#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
mod fleet;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod report;
mod run;
mod scale;
mod scenarios;
mod traffic;

use scale::Scale;
use scenarios::SCENARIOS;

/// Runs the scenario with this fault, as the page names it.
fn run(fault: &str) {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.fault == fault).unwrap();
    let measurement = (scenario.run)(&Scale::short());
    println!("{}", report::row(scenario, &measurement));
}

macro_rules! tests {
    ($($name:ident: $fault:literal,)*) => {
        $(
            #[test]
            #[ignore = "cargo xtask chaos runs it: it takes minutes and two cores"]
            fn $name() { run($fault); }
        )*

        #[test]
        fn each_scenario_is_a_test() {
            let faults = SCENARIOS.iter().map(|scenario| scenario.fault);
            assert_eq!(faults.collect::<Vec<_>>(), [$($fault),*]);
        }
    };
}

tests! {
    killed: "server killed, then restarted with its data",
    stopped: "server stopped (`SIGSTOP`)",
    blackhole: "network drops all packets",
    slow: "500 ms more latency",
    lost_replies: "replies lost after execution",
    out_of_memory: "server out of memory",
    stalls: "stalls of 100 ms",
    isolated: "three of ten processes cut off",
    cluster_nodes: "one cluster node slow, another down from the start",
    sentinel_failovers: "failovers by Sentinel",
    cluster_failovers: "failovers of a cluster",
    moved_endpoint: "endpoint moves to another server",
    stopped_daemon: "daemon stopped during an outage",
}

/// All scenarios, one after the other.
#[test]
#[ignore = "cargo xtask chaos runs it, with the release binary"]
fn table() {
    let scale = Scale::from_environment();
    let mut measurements = Vec::new();
    for scenario in SCENARIOS {
        println!("{} …", scenario.fault);
        let measurement = (scenario.run)(&scale);
        println!("{}", report::row(scenario, &measurement));
        measurements.push(measurement);
    }
    report::finish(&scale, &measurements);
}

#[test]
fn the_page_has_a_row_for_each_scenario() {
    report::check_rows();
}
