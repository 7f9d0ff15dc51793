//! Headers of real decisions, parsed by an independent parser.

use std::time::Duration;

use http::header::HeaderMap;
use proptest::prelude::*;
use sfv::{BareItem, Item, ListEntry, Parser};
use tollgate::{
    Answer, Ban, Check, Cost, Id, KeyList, ManualClock, MemoryLimiter, Micros, Operation, Policy,
    Request, Timestamp,
};

use super::HeaderStyle::{self, Draft6, Draft11, LegacyDelta, LegacyEpoch};
use super::write;

/// A limiter whose clock is stopped, 1.5 s after the beginning of a minute.
fn limiter() -> (MemoryLimiter, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_021_500_000));
    (MemoryLimiter::builder().clock(clock.clone()).build(), clock)
}

fn policy(name: &str, limits: &str) -> Policy {
    let limits: Policy = limits.parse().unwrap();
    Policy::new(name, limits.limits().to_vec()).unwrap()
}

/// Executes checks of the key `a`, each with its policy and cost.
fn decide(limiter: &MemoryLimiter, operation: Operation, checks: &[(&Policy, u64)]) -> Answer {
    let cost = |cost| Cost::new(cost).unwrap();
    let checks: Vec<_> = checks
        .iter()
        .map(|(policy, units)| Check { policy, key: b"a", cost: cost(*units) })
        .collect();
    limiter.decide(&Request { operation, checks: &checks, request_id: None }).unwrap()
}

fn written(styles: &[HeaderStyle], policies: &[&Policy], answer: &Answer) -> HeaderMap {
    let mut headers = HeaderMap::new();
    write(styles, &mut headers, policies.iter().copied().zip(&answer.decisions));
    headers
}

fn lines(headers: &HeaderMap) -> String {
    let line = |(name, value): (&_, &http::header::HeaderValue)| {
        format!("{name}: {}", value.to_str().unwrap())
    };
    headers.iter().map(line).collect::<Vec<_>>().join("\n")
}

const CHECK: Operation = Operation::Check { lease: None };

/// Executes checks of a policy `api` in turn, and compares the headers of the last one.
fn check(styles: &[HeaderStyle], limits: &str, costs: &[u64], expected: &str) {
    let (limiter, _) = limiter();
    let api = policy("api", limits);
    let decide_one = |cost: &u64| {
        let lease = api.has_concurrent().then(|| Id::from_u128(u128::from(*cost)));
        decide(&limiter, Operation::Check { lease }, &[(&api, *cost)])
    };
    let (last, before) = costs.split_last().unwrap();
    for cost in before {
        let _ = decide_one(cost);
    }
    let last = decide_one(last);
    assert_eq!(lines(&written(styles, &[&api], &last)), expected, "{limits} {costs:?}");
}

#[test]
fn each_limit_is_an_item() {
    for (limits, costs, policy, limit) in [
        // Allowed: until the capacity is restored, or for as long as the remainder must last.
        ("10/s", &[1][..], r#""api";q=10;w=1"#, r#""api";r=9;t=1"#),
        ("100/min", &[1], r#""api";q=100;w=60"#, r#""api";r=99;t=60"#),
        ("100/min fixed", &[60], r#""api";q=100;w=60"#, r#""api";r=40;t=59"#),
        ("100/h fixed", &[10], r#""api";q=100;w=3600"#, r#""api";r=90;t=3240"#),
        // Unused: more can never remain.
        ("10/s", &[0], r#""api";q=10;w=1"#, r#""api";r=10"#),
        // Denied: when the same cost would be admitted, rounded up.
        ("10/s", &[10, 1], r#""api";q=10;w=1"#, r#""api";r=0;t=1"#),
        ("1/h", &[1, 1], r#""api";q=1;w=3600"#, r#""api";r=0;t=3600"#),
        ("100/min log", &[98, 3], r#""api";q=100;w=60"#, r#""api";r=2;t=60"#),
        // Never: waiting does not help, and nothing is used.
        ("10/s", &[11], r#""api";q=10;w=1"#, r#""api";r=10"#),
        // The window of the capacity, in whole seconds, at least one.
        ("10/s burst 50", &[1], r#""api";q=50;w=5"#, r#""api";r=49;t=5"#),
        ("10/s burst 51", &[1], r#""api";q=51;w=6"#, r#""api";r=50;t=6"#),
        ("10/100ms", &[1], r#""api";q=10;w=1"#, r#""api";r=9;t=1"#),
        ("20/s queue 100", &[1], r#""api";q=101;w=6"#, r#""api";r=100;t=6"#),
        ("240/h sliding by 1m", &[1], r#""api";q=240;w=3600"#, r#""api";r=239;t=3599"#),
        ("1/366d", &[1], r#""api";q=1;w=31622400"#, r#""api";r=0;t=31622400"#),
        // Concurrency limits have a unit in place of a window.
        (
            "20 concurrent lease 60s",
            &[1],
            r#""api";q=20;qu="concurrent-requests""#,
            r#""api";r=19;t=60"#,
        ),
        (
            "10/s burst 20; 100/h fixed; 5 concurrent lease 9s",
            &[2],
            r#""api.1";q=20;w=2, "api.2";q=100;w=3600, "api.3";q=5;qu="concurrent-requests""#,
            r#""api.1";r=18;t=2, "api.2";r=98;t=3528, "api.3";r=3;t=9"#,
        ),
        // Of several limits, only denying ones have the time of admission.
        (
            "10/s; 10/min fixed",
            &[10, 1],
            r#""api.1";q=10;w=1, "api.2";q=10;w=60"#,
            r#""api.1";r=0;t=1, "api.2";r=0;t=59"#,
        ),
    ] {
        let expected = format!("ratelimit-policy: {policy}\nratelimit: {limit}");
        check(&[Draft11], limits, costs, &expected);
    }
}

#[test]
fn other_styles_show_the_binding_limit() {
    let two = "10/s; 100/min fixed";
    for (style, limits, costs, [limit, remaining, reset]) in [
        (LegacyDelta, "10/s", &[1][..], [10, 9, 1]),
        (LegacyDelta, "10/s", &[0], [10, 10, 0]),
        (LegacyDelta, "10/s", &[11], [10, 10, 0]),
        (LegacyDelta, "2/min log", &[2, 1], [2, 0, 60]),
        (LegacyDelta, two, &[10], [10, 0, 1]),
        (LegacyDelta, two, &[10, 95], [10, 0, 1]),
        (LegacyEpoch, "2/min log", &[2, 1], [2, 0, 1_763_650_082]),
        (LegacyEpoch, "10/s", &[0], [10, 10, 1_763_650_022]),
        (Draft6, "3 concurrent lease 9s", &[1], [3, 2, 9]),
    ] {
        let start = if style == Draft6 { "ratelimit" } else { "x-ratelimit" };
        let expected = format!(
            "{start}-limit: {limit}\n{start}-remaining: {remaining}\n{start}-reset: {reset}"
        );
        check(&[style], limits, costs, &expected);
    }
    check(&[], "10/s", &[1], "");
    let trio = "ratelimit-limit: 10\nratelimit-remaining: 9\nratelimit-reset: 1\nratelimit-policy:";
    check(&[Draft6], "10/s", &[1], &format!("{trio} 10;w=1"));
    let expected = format!("{trio} \"api\";q=10;w=1\nratelimit: \"api\";r=9;t=1");
    check(&[Draft6, Draft11], "10/s", &[1], &expected);
}

#[test]
fn inline_limits_are_named_by_their_notation() {
    let (limiter, _) = limiter();
    let inline: Policy = "10/s; 5/min log".parse().unwrap();
    let answer = decide(&limiter, CHECK, &[(&inline, 1)]);
    assert_eq!(
        lines(&written(&[Draft11], &[&inline], &answer)),
        "ratelimit-policy: \"=10/s; 5/min log.1\";q=10;w=1, \"=10/s; 5/min log.2\";q=5;w=60\n\
         ratelimit: \"=10/s; 5/min log.1\";r=9;t=1, \"=10/s; 5/min log.2\";r=4;t=60"
    );
}

#[test]
fn several_checks_share_one_list_without_shadow_policies_and_key_lists() {
    let (limiter, _) = limiter();
    let (user, ip) = (policy("user", "10/s"), policy("ip", "5/min log"));
    let shadow = policy("shadow", "1/h").shadow();
    let listed = policy("listed", "1/h").with_allow_list(["a"].into_iter().collect::<KeyList>());
    let policies = [&user, &shadow, &ip, &listed];
    let answer = decide(&limiter, CHECK, &policies.map(|policy| (policy, 1)));
    assert_eq!(
        lines(&written(&[Draft11, LegacyDelta], &policies, &answer)),
        "ratelimit-policy: \"user\";q=10;w=1, \"ip\";q=5;w=60\n\
         ratelimit: \"user\";r=9;t=1, \"ip\";r=4;t=60\n\
         x-ratelimit-limit: 5\nx-ratelimit-remaining: 4\nx-ratelimit-reset: 60"
    );
    for alone in [&shadow, &listed] {
        let answer = decide(&limiter, CHECK, &[(alone, 1)]);
        let all = [Draft11, Draft6, LegacyDelta, LegacyEpoch];
        assert_eq!(lines(&written(&all, &[alone], &answer)), "");
    }
}

#[test]
fn a_policy_with_two_keys_is_listed_once() {
    let (limiter, _) = limiter();
    let api = policy("api", "10/s");
    let check = |key, units| Check { policy: &api, key, cost: Cost::new(units).unwrap() };
    let checks = [check(b"a", 1), check(b"b", 4)];
    let answer = limiter.decide(&Request { operation: CHECK, checks: &checks, request_id: None });
    assert_eq!(
        lines(&written(&[Draft11], &[&api, &api], &answer.unwrap())),
        "ratelimit-policy: \"api\";q=10;w=1\nratelimit: \"api\";r=9;t=1, \"api\";r=6;t=1"
    );
}

#[test]
fn a_banned_key_has_nothing_remaining_until_the_ban_ends() {
    let (limiter, _) = limiter();
    let hour = Micros::from_secs(3_600);
    let api = policy("api", "2/min log").with_ban(Ban::new(1, hour, hour).unwrap());
    let check = |cost| decide(&limiter, CHECK, &[(&api, cost)]);
    let _ = check(1);
    // The denial that begins the ban, and one of the banned key.
    for answer in [check(2), check(1)] {
        let headers = written(&[LegacyDelta], &[&api], &answer);
        assert_eq!(headers["x-ratelimit-remaining"], "0", "{headers:?}");
        assert_eq!(headers["x-ratelimit-reset"], "3600", "{headers:?}");
    }
}

#[test]
fn a_blocked_key_has_nothing_remaining() {
    let (limiter, _) = limiter();
    let api = policy("api", "10/s");
    for (span, draft11, delta) in [
        (Some(Duration::from_micros(7_000_001)), "\"api\";r=0;t=8", Some("8")),
        (None, "\"api\";r=0", None),
    ] {
        assert!(limiter.block(&api, b"a", span).changed);
        let headers =
            written(&[Draft11, LegacyDelta], &[&api], &decide(&limiter, CHECK, &[(&api, 1)]));
        assert_eq!(headers["ratelimit"], draft11);
        assert_eq!(headers.get("x-ratelimit-reset").map(|value| value.to_str().unwrap()), delta);
    }
}

#[test]
fn a_long_list_is_cut_to_binding_limits() {
    let (limiter, _) = limiter();
    let limits: Vec<_> = (1..=16).map(|n| format!("{n}/min; ")).collect();
    let policies: Vec<_> = (0..32)
        .map(|n| {
            policy(&format!("p{n:02}-{}", "x".repeat(100)), limits.concat().trim_end_matches("; "))
        })
        .collect();
    let policies: Vec<_> = policies.iter().collect();
    let checks: Vec<_> = policies.iter().map(|policy| (*policy, 1)).collect();
    let headers = written(&[Draft11], &policies, &decide(&limiter, CHECK, &checks));
    for name in ["ratelimit", "ratelimit-policy"] {
        let list = headers[name].to_str().unwrap();
        assert!(list.len() <= super::draft11::MAX_BYTES && list.len() > 1_500, "{}", list.len());
        assert!(list.starts_with("\"p00-") && list.contains("p10-"), "{list}");
        assert!(!list.contains(".2\""), "the lowest limit of each policy binds: {list}");
    }
    assert_eq!(items(&headers, "ratelimit").len(), items(&headers, "ratelimit-policy").len());
}

/// The items of a list, by an independent parser of RFC 9651.
fn items(headers: &HeaderMap, name: &str) -> Vec<Item> {
    let Some(value) = headers.get(name) else { return Vec::new() };
    let list: sfv::List = Parser::new(value.as_bytes()).parse().unwrap();
    let item = |entry| match entry {
        ListEntry::Item(item) => item,
        ListEntry::InnerList(_) => panic!("{value:?} has a list inside"),
    };
    list.into_iter().map(item).collect()
}

fn name(item: &Item) -> &str {
    match &item.bare_item {
        BareItem::String(string) => string.as_str(),
        other => panic!("{other:?} is not a string"),
    }
}

fn integer(item: &Item, parameter: &str) -> Option<i64> {
    item.params.get(parameter).map(|param| match param {
        BareItem::Integer(integer) => i64::from(*integer),
        other => panic!("{parameter} is {other:?}"),
    })
}

/// Checks the properties that the headers of every decision have.
fn check_draft11(headers: &HeaderMap, answer: &Answer) {
    let policies = items(headers, "ratelimit-policy");
    for item in items(headers, "ratelimit") {
        let policy = policies.iter().find(|policy| name(policy) == name(&item)).unwrap();
        let (q, w) = (integer(policy, "q").unwrap(), integer(policy, "w"));
        let (r, t) = (integer(&item, "r").unwrap(), integer(&item, "t"));
        assert!((0..=q).contains(&r), "{headers:?}");
        assert!(
            w.is_none_or(|window| window >= 1) && w.is_some() != policy.params.contains_key("qu")
        );
        assert!(t.is_none_or(|seconds| seconds >= 1), "{headers:?}");
        if let (Some(w), Some(t), true) = (w, t, answer.allowed()) {
            let (faster, limit) = (i128::from(r) * i128::from(w), i128::from(q) * i128::from(t));
            assert!(faster <= limit, "{headers:?} promises more than the limit gives");
        }
    }
    if let Some(retry_after) = answer.retry_after() {
        let longest =
            items(headers, "ratelimit").iter().filter_map(|item| integer(item, "t")).max();
        let seconds = i64::try_from(retry_after.secs_rounded_up()).unwrap();
        assert!(longest.unwrap() >= seconds.max(1), "{headers:?} {retry_after:?}");
    }
}

const LIMITS: [&str; 12] = [
    "10/s",
    "10/s burst 50",
    "3/100ms",
    "100/min fixed",
    "7/min fixed from-first count-denied",
    "5/min log",
    "100/min sliding",
    "240/h sliding by 1m",
    "20/s queue 5",
    "3 concurrent lease 60s",
    "10000000/30d",
    "9/s; 20/min log; 4 concurrent lease 5s",
];

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => any::<u64>().prop_map(|id| Operation::Check { lease: Some(Id::from_u128(id.into())) }),
        1 => Just(Operation::Peek),
        1 => Just(Operation::Take),
        1 => Just(Operation::Penalize),
        1 => (0..9_000_000_u64).prop_map(|span| Operation::Block { span: Some(Micros::new(span + 1)) }),
    ]
}

proptest! {
    #[test]
    fn headers_of_any_decision_parse_and_promise_no_more_than_the_limit(
        limits in prop::sample::subsequence(LIMITS.to_vec(), 1..4),
        steps in prop::collection::vec((operation(), 0..12_u64, 0..40_000_000_u64), 1..24),
    ) {
        let (limiter, clock) = limiter();
        let all: Vec<_> =
            limits.iter().enumerate().map(|(n, limits)| policy(&format!("p{n}"), limits)).collect();
        for (operation, cost, pause) in steps {
            clock.advance(Micros::new(pause));
            // Only checks and peeks accept several policies.
            let together = matches!(operation, Operation::Check { .. } | Operation::Peek);
            let policies: Vec<_> = all.iter().take(if together { 4 } else { 1 }).collect();
            let cost = Cost::new(cost).unwrap();
            let checks: Vec<_> =
                policies.iter().map(|policy| Check { policy, key: b"a", cost }).collect();
            let request = Request { operation, checks: &checks, request_id: None };
            // Some algorithms do not support all operations.
            let Ok(answer) = limiter.decide(&request) else { continue };
            let headers = written(&[Draft11, LegacyDelta, LegacyEpoch], &policies, &answer);
            check_draft11(&headers, &answer);
            let number = |name| headers.get(name).map(|value| value.to_str().unwrap().parse::<u64>());
            for name in ["x-ratelimit-limit", "x-ratelimit-remaining"] {
                prop_assert!(number(name).unwrap().is_ok());
            }
        }
    }
}
