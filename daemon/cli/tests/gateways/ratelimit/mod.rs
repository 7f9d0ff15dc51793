//! Envoy's rate limit filter and the daemon, by the scenarios that envoyproxy/ratelimit is tested
//! with. Each answer is held to what is expected, not only the last.

mod away;
mod limits;
mod quotas;
mod recipe;
mod replaces;
mod stage;

use tollgate_testkit::GatewayKind;

use self::stage::Stage;

/// What is charged, in the words of the configuration.
const BOTH: [&str; 2] = ["atomic", "reference"];

/// Asks what the rows ask, and holds the answers to them.
///
/// A row is a path with headers, and after `=>` the status, what is left and the limit, or `-` for
/// both where Envoy is told none: `/two who=a plan=basic => 200 0 of 1`. What passes reaches the
/// application once, and nothing else does.
#[track_caller]
fn check(stage: &Stage, rows: &str) {
    let rows = rows.lines().map(str::trim).filter(|x| !x.is_empty() && !x.starts_with('#'));
    for (at, row) in rows.enumerate() {
        let (line, expected) = row.split_once(" => ").unwrap();
        let answer = stage.ask(line);
        let left = answer.header("x-ratelimit-remaining").unwrap_or("-");
        // `3, 3;w=31536000;name="basic"`
        let limit = answer.header("x-ratelimit-limit").and_then(|header| header.split(", ").next());
        let said = match limit {
            Some(limit) => format!("{} {left} of {limit}", answer.status),
            None => format!("{} {left}", answer.status),
        };
        assert_eq!(said, expected, "row {at}: {row}\n{answer:?}");
        let is_denied = answer.status == 429;
        assert_eq!(answer.header("x-envoy-ratelimited").is_some(), is_denied, "{answer:?}");
        assert_eq!(answer.header("retry-after").is_some(), is_denied, "{answer:?}");
        let reached: usize = stage.reached().iter().sum();
        assert_eq!(reached, usize::from(!is_denied), "row {at}: {row}");
    }
}

/// Runs a scenario if there is an Envoy.
fn staged(charging: &str, scenario: impl FnOnce(&Stage)) {
    if GatewayKind::Envoy.is_installed() {
        scenario(&Stage::new(charging));
    }
}
