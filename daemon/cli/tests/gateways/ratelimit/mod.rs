//! Envoy's rate limit filter with the daemon, in the scenarios of envoyproxy/ratelimit's integration
//! tests. Every response is checked.

mod daemon_unavailable;
mod limits;
mod quotas;
mod recipe;
mod replacement;
mod setup;

use tollgate_testkit::GatewayKind;

use self::setup::Setup;

/// The values of `envoy.charging`.
const CHARGING_MODES: [&str; 2] = ["atomic", "reference"];

/// Sends the request of each row and compares the response.
///
/// A row is a path with headers, then `=>`, the status, the remaining requests and the limit, or `-`
/// without a limit: `/two who=a plan=basic => 200 0 of 1`. An admitted request reaches the application
/// once; a denied one does not.
#[track_caller]
fn check(setup: &Setup, rows: &str) {
    let rows = rows.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#'));
    for (at, row) in rows.enumerate() {
        let (line, expected) = row.split_once(" => ").unwrap();
        let answer = setup.ask(line);
        let remaining = answer.header("x-ratelimit-remaining").unwrap_or("-");
        // `3, 3;w=31536000;name="basic"`
        let limit = answer.header("x-ratelimit-limit").and_then(|header| header.split(", ").next());
        let found = match limit {
            Some(limit) => format!("{} {remaining} of {limit}", answer.status),
            None => format!("{} {remaining}", answer.status),
        };
        assert_eq!(found, expected, "row {at}: {row}\n{answer:?}");
        let is_denied = answer.status == 429;
        assert_eq!(answer.header("x-envoy-ratelimited").is_some(), is_denied, "{answer:?}");
        assert_eq!(answer.header("retry-after").is_some(), is_denied, "{answer:?}");
        let reached: usize = setup.reached().iter().sum();
        assert_eq!(reached, usize::from(!is_denied), "row {at}: {row}");
    }
}

/// Runs a scenario if Envoy is installed.
fn with_setup(charging: &str, scenario: impl FnOnce(&Setup)) {
    if GatewayKind::Envoy.is_installed() {
        scenario(&Setup::new(charging));
    }
}
