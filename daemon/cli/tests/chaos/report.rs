//! The table of `docs/reliability.md`.

use tollgate_testkit::{Server, assert_up_to_date};

use crate::process::read_repository;
use crate::run::Measurement;
use crate::scale::Scale;
use crate::scenarios::{SCENARIOS, Scenario};

const PAGE: &str = "docs/reliability.md";
const BEGIN: &str = "<!-- begin of the measured table -->\n";
const END: &str = "<!-- end of the measured table -->\n";
const HEADER: &str = "| Fault | Promise: admitted at most | Admitted | By shares | Decision, p99 | Decision, slowest | Recovery |\n\
                      |---|---|---|---|---|---|---|\n";

/// A row of the table.
pub(crate) fn row(scenario: &Scenario, measurement: &Measurement) -> String {
    let millis = |micros: u64| format!("{:.1} ms", micros as f64 / 1e3);
    format!(
        "| {} | {} | {:.2} | {:.2} | {} | {} | {:.2} s |",
        scenario.fault,
        scenario.promise,
        measurement.admitted.worst,
        measurement.shares.worst,
        millis(measurement.p99),
        millis(measurement.p100),
        measurement.recovery as f64 / 1e6,
    )
}

/// Prints the table; writes it into the page if the environment variable `UPDATE` is set.
pub(crate) fn finish(scale: &Scale, measurements: &[Measurement]) {
    let mut table = HEADER.to_owned();
    for (scenario, measurement) in SCENARIOS.iter().zip(measurements) {
        table += &row(scenario, measurement);
        table.push('\n');
    }
    let decisions: usize = measurements.iter().map(|measurement| measurement.decisions).sum();
    let growth = measurements.iter().map(|measurement| measurement.growth_kib).max().unwrap();
    let unknown: u64 = measurements.iter().map(|measurement| measurement.unknown_outcomes).sum();
    table += &format!(
        "\nMeasured with `{}`: {} processes, a deadline of {} ms, outages of {} s, {} failovers of each kind; {decisions} \
         decisions, {unknown} requests with an unknown outcome. No daemon grew by more than {:.1} MiB. Machine: {} cores \
         for the daemons, clients and servers; {}.\n",
        if scale.failovers > 2 { "cargo xtask chaos --long" } else { "cargo xtask chaos" },
        scale.daemons,
        scale.deadline,
        scale.outage.as_secs(),
        scale.failovers,
        growth as f64 / 1024.0,
        std::thread::available_parallelism().unwrap(),
        server_version(),
    );
    println!("\n{table}");
    if std::env::var_os("UPDATE").is_some() {
        let page = read_repository(PAGE);
        let (before, after, _) = split(&page);
        let updated = format!("{before}{BEGIN}\n{table}\n{END}{after}");
        assert_up_to_date(PAGE, &updated, "tollgate-cli", "chaos");
    }
}

fn server_version() -> String {
    let info = Server::start().command(&["INFO", "server"]).text();
    let field = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    };
    match field("valkey_version") {
        Some(version) => format!("Valkey {version}"),
        None => format!("Redis {}", field("redis_version").unwrap()),
    }
}

/// The page before and after the table, and the table.
fn split(page: &str) -> (&str, &str, &str) {
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    (before, after, table)
}

/// Asserts that the table has the faults and the promises of the scenarios.
pub(crate) fn check_rows() {
    let page = read_repository(PAGE);
    let (_, _, table) = split(&page);
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let rows: Vec<_> = rows.map(|row| row.splitn(4, " | ").take(2).collect::<Vec<_>>()).collect();
    let expected = SCENARIOS
        .iter()
        .map(|scenario| vec![format!("| {}", scenario.fault), scenario.promise.to_owned()]);
    let expected: Vec<_> = expected.collect();
    assert_eq!(rows, expected, "UPDATE=1 cargo xtask chaos --long writes the table of {PAGE}");
}
