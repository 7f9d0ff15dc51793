//! Envoy's rate limit filter with the daemon, in the scenarios of envoyproxy/ratelimit's
//! integration tests. Every response is checked.

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
/// A row is a path with headers, then `=>`, the status, the remaining requests and the limit, or
/// `-` without a limit: `/two who=a plan=basic => 200 0 of 1`. An admitted request reaches the
/// application once; a denied one does not.
#[track_caller]
fn check(setup: &Setup, rows: &str) {
    let rows = rows.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#'));
    for (at, row) in rows.enumerate() {
        let (line, expected) = row.split_once(" => ").unwrap();
        let response = setup.request(line);
        let remaining = response.header("x-ratelimit-remaining").unwrap_or("-");
        // `3, 3;w=31536000;name="basic"`
        let limit =
            response.header("x-ratelimit-limit").and_then(|header| header.split(", ").next());
        let found = match limit {
            Some(limit) => format!("{} {remaining} of {limit}", response.status),
            None => format!("{} {remaining}", response.status),
        };
        assert_eq!(found, expected, "row {at}: {row}\n{response:?}");
        let is_denied = response.status == 429;
        assert_eq!(response.header("x-envoy-ratelimited").is_some(), is_denied, "{response:?}");
        assert_eq!(response.header("retry-after").is_some(), is_denied, "{response:?}");
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

/// Checks rows with each of these values of `envoy.charging`, if Envoy is installed.
fn check_in(modes: &[&str], rows: &str) {
    for charging in modes {
        with_setup(charging, |setup| check(setup, rows));
    }
}
