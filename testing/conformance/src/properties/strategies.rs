//! Random limits and policies. Most numbers are small, so that traces reach the edges; some are huge.

use proptest::prelude::*;
use proptest::sample::select;
use tollgate_algorithms::{Ban, Kind, Limit, Micros, Policy, Spec, Timestamp};

const MS: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;
const DAY: u64 = 86_400 * SECOND;

/// Windows in µs.
fn windows() -> impl Strategy<Value = u64> {
    let short = vec![MS, 2 * MS, 7 * MS, 10 * MS, 100 * MS, SECOND, 3 * SECOND];
    let usual = vec![10 * SECOND, 60 * SECOND, 600 * SECOND, 3_600 * SECOND];
    let long = vec![DAY, 7 * DAY, 14 * DAY, 30 * DAY, 365 * DAY, 366 * DAY];
    prop_oneof![6 => select(short), 3 => select(usual), 1 => select(long)]
}

fn counts() -> impl Strategy<Value = u64> {
    // Mostly primes, which do not reduce.
    let huge = vec![7_919, 999_983, 9_999_991, 2_147_483_647, 4_503_599_627_370_449];
    prop_oneof![12 => 1_u64..=20, 2 => 21_u64..200, 1 => select(huge)]
}

/// The precisions in whole ms that divide a window into 1 to 24 pieces, or into up to the maximum.
fn precision(window: u64) -> impl Strategy<Value = Micros> {
    let cuts = (1..=24).chain([60, 1_440, 4_096]);
    let pieces =
        cuts.filter(|cut| window.is_multiple_of(cut * MS)).map(|cut| Micros::new(window / cut));
    select(pieces.collect::<Vec<_>>())
}

/// An algorithm for a window of this many µs.
fn kinds(window: u64) -> BoxedStrategy<Kind> {
    let offset = (0..window / MS).prop_map(|ms| Kind::Fixed { offset: Micros::from_millis(ms) });
    prop_oneof![
        4 => counts().prop_map(|burst| Kind::TokenBucket { burst }),
        1 => Just(Kind::Fixed { offset: Micros::ZERO }),
        1 => offset,
        2 => Just(Kind::FixedFromFirst),
        2 => Just(Kind::Log),
        2 => Just(Kind::Sliding),
        2 => (precision(window), any::<bool>())
            .prop_map(|(precision, strict)| Kind::SlidingBy { precision, strict }),
        2 => counts().prop_map(|count| Kind::Queue { places: count - 1 }),
        1 => Just(Kind::Concurrent),
    ]
    .boxed()
}

fn counts_denied(kind: Kind) -> bool {
    !matches!(kind, Kind::TokenBucket { .. } | Kind::Queue { .. } | Kind::Concurrent)
}

/// Whether twice the capacity drains before the last representable time.
fn recovers_in_time(spec: &Spec) -> bool {
    let drains = matches!(spec.kind, Kind::TokenBucket { .. } | Kind::Queue { .. });
    let units = u128::from(spec.window.get()) * 2 * u128::from(spec.capacity());
    !drains || units / u128::from(spec.count) < u128::from(Timestamp::MAX.as_micros())
}

/// A ban, often after few denials.
fn bans() -> BoxedStrategy<Ban> {
    let denials = prop_oneof![6 => 1_u64..=4, 1 => Just(1_000_000)];
    (denials, windows(), windows())
        .prop_filter_map("the ban is valid", |(denials, within, span)| {
            Ban::new(denials, Micros::new(within), Micros::new(span)).ok()
        })
        .boxed()
}

/// Any limit that can be built.
pub(crate) fn limits() -> BoxedStrategy<Limit> {
    let specs = windows().prop_flat_map(|window| {
        (counts(), kinds(window), prop::bool::weighted(0.3)).prop_map(
            move |(count, kind, denied)| {
                let spec = Spec::new(count, Micros::new(window), kind);
                if denied && counts_denied(kind) { spec.with_count_denied() } else { spec }
            },
        )
    });
    specs
        .prop_filter("the limit recovers before the last time", recovers_in_time)
        .prop_filter_map("the limit is in range", |spec| spec.build().ok())
        .boxed()
}

/// A policy with one limit, and without a bound for log entries.
pub(crate) fn single_policies(name: &'static str) -> BoxedStrategy<Policy> {
    limits()
        .prop_filter_map("the policy is valid", move |limit| Policy::new(name, [limit]).ok())
        .boxed()
}

/// A policy with one to four limits.
pub(crate) fn policies(name: &'static str) -> BoxedStrategy<Policy> {
    let several = prop::collection::vec(limits(), 1..=4);
    let one = limits().prop_map(|limit| vec![limit]);
    let reservable = limits().prop_filter("the limit can reserve", Limit::can_reserve);
    let reservable = reservable.prop_map(|limit| vec![limit]);
    let all = prop_oneof![3 => one, 1 => reservable, 3 => several];
    let entries = prop_oneof![5 => Just(10_000_usize), 1 => 4_usize..8];
    let parts = (all, prop::bool::weighted(0.1), entries);
    let policies =
        parts.prop_filter_map("the policy is valid", move |(limits, shadow, entries)| {
            let policy = Policy::new(name, limits).ok()?.with_log_entries(entries);
            Some(if shadow { policy.shadow() } else { policy })
        });
    policies.boxed()
}

/// The same policies with bans, and a few without one.
pub(crate) fn with_bans(policies: BoxedStrategy<Vec<Policy>>) -> BoxedStrategy<Vec<Policy>> {
    let bans = prop::collection::vec(prop::option::weighted(0.9, bans()), 12);
    let with_bans = |(policies, bans): (Vec<Policy>, Vec<Option<Ban>>)| {
        policies.into_iter().zip(bans).map(|(policy, ban)| policy.with_ban(ban)).collect()
    };
    (policies, bans).prop_map(with_bans).boxed()
}

/// Policies with the names `p0`, `p1` and so on, each with one to four limits.
pub(crate) fn several_policies<const N: usize>() -> [BoxedStrategy<Policy>; N] {
    std::array::from_fn(|index| policies(["p0", "p1", "p2"][index]))
}

/// The same limit with other numbers. Its identity (kind, window and precision) stays.
pub(crate) fn renumbered(spec: Spec, count: u64, capacity: u64, denied: bool) -> Spec {
    let (kind, count) = match spec.kind {
        Kind::TokenBucket { .. } => (Kind::TokenBucket { burst: capacity }, count),
        Kind::Queue { .. } => (Kind::Queue { places: capacity }, count),
        Kind::Fixed { .. } => (Kind::Fixed { offset: Micros::ZERO }, count),
        Kind::SlidingBy { precision, .. } => (Kind::SlidingBy { precision, strict: denied }, count),
        kind => (kind, count),
    };
    Spec { count, kind, count_denied: denied && counts_denied(kind), ..spec }
}

/// Versions of one policy, as during a roll-out: each limit has other numbers or is absent.
pub(crate) fn versions(count: usize) -> BoxedStrategy<Vec<Policy>> {
    // Every version needs a limit, which is less likely with many versions.
    let present = if count > 3 { 0.98 } else { 0.85 };
    let numbers = (prop::bool::weighted(present), counts(), counts(), any::<bool>());
    let limit = (limits(), prop::collection::vec(numbers, count));
    prop::collection::vec(limit, 1..=3)
        .prop_filter_map("each version is valid", move |limits| {
            let version = |index: usize| {
                let present = limits.iter().filter(|(_, numbers)| numbers[index].0);
                let renumbered = present.map(|(limit, numbers)| {
                    let (_, count, capacity, denied) = numbers[index];
                    let spec = renumbered(*limit.spec(), count, capacity, denied);
                    if recovers_in_time(&spec) { spec.build().ok() } else { None }
                });
                Policy::new("p", renumbered.collect::<Option<Vec<_>>>()?).ok()
            };
            (0..count).map(version).collect::<Option<Vec<_>>>()
        })
        .boxed()
}
