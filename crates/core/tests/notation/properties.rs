//! Properties of the notation on random limits and texts.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_algorithms::{
    Kind, Limit, LimitError, Micros, NotationError, Spec, parse_duration, parse_limits,
};

/// The longest window in ms.
const MAX_WINDOW_MILLIS: u64 = 366 * 86_400_000;

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![1..100_u64, 1..10_000_000_u64, 1..1_u64 << 54, 1..=u64::MAX]
}

/// Windows in ms, round ones and arbitrary ones.
fn windows() -> impl Strategy<Value = u64> {
    let units = select(vec![1_u64, 1_000, 60_000, 3_600_000, 86_400_000, 604_800_000]);
    let round = (units, 1..100_u64).prop_map(|(unit, n)| (unit * n).min(MAX_WINDOW_MILLIS));
    prop_oneof![round, 1..=MAX_WINDOW_MILLIS]
}

/// Limits with every number in its range. Together the numbers may be too large.
fn specs() -> impl Strategy<Value = Spec> {
    let numbers = (0..9_u8, counts(), counts(), windows(), 1..=4_096_u64);
    (numbers, any::<bool>(), any::<bool>()).prop_map(|(numbers, same, denied)| {
        let (kind, count, other, ms, buckets) = numbers;
        let window = Micros::from_millis(ms);
        let precision = Micros::from_millis((ms / buckets).max(1));
        let offset = Micros::from_millis(if same { 0 } else { other % ms });
        let spec = |kind| Spec { count_denied: denied, ..Spec::new(count, window, kind) };
        match kind {
            0 => Spec::new(count, window, Kind::TokenBucket { burst: count }),
            1 => Spec::new(count, window, Kind::TokenBucket { burst: other }),
            2 => spec(Kind::Fixed { offset }),
            3 => spec(Kind::FixedFromFirst),
            4 => spec(Kind::Log),
            5 => spec(Kind::Sliding),
            6 => {
                let window = Micros::from_millis(buckets.min(ms) * precision.get() / 1_000);
                Spec { window, ..spec(Kind::SlidingBy { precision, strict: same }) }
            }
            7 => Spec::new(count, window, Kind::Queue { places: other }),
            _ => Spec::new(count % 10_000 + 1, window, Kind::Concurrent),
        }
    })
}

/// Texts that resemble limits.
fn nearly() -> impl Strategy<Value = String> {
    let words = "10 0 1.5 1e3 -1 1_000 99999999999999999999 / /s /min ms m fixed from-first offset \
                 log sliding by strict queue concurrent lease burst count-denied token month per \
                 burts 1h30m 5h 1d ; é ４ \"";
    let words: Vec<_> = words.split(' ').chain([" ", "\u{1b}", "\u{301}", "\n"]).collect();
    (vec(select(words), 0..9), select(vec!["", " "])).prop_map(|(words, joint)| words.join(joint))
}

/// The same limit with its words in another order, case and spacing.
fn reorder(text: &str, seed: usize) -> String {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    let mut words = text.split(' ');
    let head = words.next().unwrap_or_default();
    for word in words {
        match groups.last_mut() {
            Some(group) if word.starts_with(|c: char| c.is_ascii_digit()) => group.push(word),
            _ => groups.push(vec![word]),
        }
    }
    let turn = seed % groups.len().max(1);
    groups.rotate_left(turn);
    if seed.is_multiple_of(2) {
        groups.reverse();
    }
    let space = [" ", "  ", "\t", " \u{a0} "][seed % 4];
    let text = [&[head], groups.concat().as_slice()].concat().join(space);
    if seed.is_multiple_of(3) { text.to_uppercase() } else { text.replace('/', " / ") }
}

/// Checks that a limit that is too large is rejected with a lower one that is valid. If only the
/// count differs, no greater count is valid.
fn check_nearest(spec: Spec) {
    let Err(error) = spec.build() else { return };
    let LimitError::Inexact { limit, nearest } = error else { unreachable!("{spec}: {error}") };
    assert_eq!(limit, spec);
    let Err(refused) = spec.to_string().parse::<Limit>() else { unreachable!("{spec} is parsed") };
    assert!(refused.to_string().ends_with(&format!(": {error}")), "{refused}");
    let lower = nearest.to_string().parse::<Limit>();
    assert_eq!(lower.map(|limit| *limit.spec()), Ok(nearest));
    assert!(nearest.count <= spec.count && nearest.capacity() <= spec.capacity(), "{error}");
    assert_eq!((nearest.window, nearest.count_denied), (spec.window, spec.count_denied));
    if matches!(spec.kind, Kind::TokenBucket { .. } | Kind::Queue { .. }) {
        assert_ne!(nearest, spec);
    } else {
        assert_eq!(nearest.kind, spec.kind);
        let next = Spec { count: nearest.count + 1, ..nearest };
        assert!(next.build().is_err(), "{next}");
    }
}

/// Regression: the capacity was computed for the original count and combined with a lower one.
#[test]
fn notation_of_the_nearest_lower_limit_fits_where_count_and_capacity_are_too_large() {
    let places = (1 << 53) + 1;
    check_nearest(Spec::new(1 << 53, Micros::from_secs(1), Kind::Queue { places }));
}

/// Checks that an error points into its text and that its messages have no control characters.
fn check_error(error: &NotationError) {
    let (text, span) = (error.text(), error.span());
    assert!(text.get(span).is_some(), "{error:?}");
    let (line, pointer) = (error.to_string(), error.pointer().to_string());
    assert!(!line.contains(char::is_control), "{line}");
    assert_eq!(pointer.lines().count(), 2, "{pointer}");
    assert_eq!(pointer.matches(char::is_control).count(), 1, "{pointer}");
    assert!(line.len() < 2_000, "{line}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn notation_of_a_limit_parses_back_to_it(spec in specs(), seed in any::<usize>()) {
        let Ok(limit) = spec.build() else { return Ok(()) };
        let text = limit.to_string();
        prop_assert_eq!(limit.spec(), &spec);
        prop_assert_eq!(text.parse::<Limit>(), Ok(limit));
        let other = reorder(&text, seed);
        prop_assert_eq!(other.parse::<Limit>(), Ok(limit), "{}", other);
    }

    #[test]
    fn notation_of_the_nearest_lower_limit_fits(spec in specs()) {
        check_nearest(spec);
    }

    #[test]
    fn notation_never_panics(text in prop_oneof![nearly(), any::<String>()]) {
        match text.parse::<Limit>() {
            Ok(limit) => prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit)),
            Err(error) => check_error(&error),
        }
        match parse_limits(&text) {
            Ok(limits) => prop_assert_eq!(limits.len(), text.split(';').count()),
            Err(error) => check_error(&error),
        }
        if let Err(error) = parse_duration(&text) {
            check_error(&error);
        }
    }
}
