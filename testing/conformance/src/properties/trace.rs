//! Traces: what is asked, of which policy and key, and how the time moves in between.

use proptest::prelude::*;
use proptest::sample::select;

/// How the time moves before a request. Moves are in terms of what was answered and of the
/// policy's windows, so that they land on the edges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    /// Stands still.
    Stay,
    /// So many µs on, or back.
    By(i64),
    /// To the latest retry, and so many µs on.
    Retry(i64),
    /// To the latest reset, and so many µs on.
    Reset(i64),
    /// On by so many parts in 1,000 of the policy's first window, and so many µs on.
    Window(u32, i64),
    /// To the next multiple of the policy's first window, and so many µs on.
    Edge(i64),
}

/// An amount, in terms of the policy's first capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// So many units.
    Units(u64),
    /// So many sixteenths of the capacity, and so many units more.
    Part(u64, u64),
}

/// Which charge a refund is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Charged {
    /// It does not say.
    Unsaid,
    /// The one so many answers ago.
    Ago(usize),
    /// One that never was, so many µs before now.
    Wrong(u64),
}

/// What is asked; ids are small numbers, so that they meet again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Check { lease: Option<u8> },
    Peek,
    Take,
    Reserve { id: u8, max_wait: Option<u32> },
    Cancel { id: u8 },
    Refund { charged: Charged },
    Penalize,
    Reset,
    Block { thousandths: Option<u32> },
    Unblock,
    Acquire { lease: u8 },
    Renew { lease: u8 },
    Release { lease: u8 },
}

/// One (policy, key, cost): the first two as indexes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of {
    pub(crate) policy: usize,
    pub(crate) key: u8,
    pub(crate) cost: Amount,
}

/// One step of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) moves: Move,
    pub(crate) ask: Ask,
    pub(crate) of: Vec<Of>,
    pub(crate) request_id: Option<u8>,
}

const YEAR: i64 = 365 * 86_400 * 1_000_000;

fn moves(backwards: bool) -> BoxedStrategy<Move> {
    let nudge = || select(vec![-1_i64, 0, 0, 1]);
    let forwards = prop_oneof![
        4 => Just(Move::Stay),
        2 => (1_i64..50).prop_map(Move::By),
        1 => (1_i64..20_000_000).prop_map(Move::By),
        4 => nudge().prop_map(Move::Retry),
        1 => nudge().prop_map(Move::Reset),
        4 => (0_u32..1_100, nudge()).prop_map(|(part, more)| Move::Window(part, more)),
        1 => nudge().prop_map(Move::Edge),
    ];
    if !backwards {
        return forwards.boxed();
    }
    let steps = vec![1, 1_000, 1_000_000, 9_999_999, 10_000_001, 3_600_000_000, YEAR, 10 * YEAR];
    let step = (select(steps), any::<bool>());
    let steps = step.prop_map(|(by, back)| Move::By(if back { -by } else { by }));
    prop_oneof![12 => forwards, 1 => steps, 1 => (-20_000_i64..0).prop_map(Move::By)].boxed()
}

pub(crate) fn amounts() -> BoxedStrategy<Amount> {
    prop_oneof![
        10 => (0_u64..6).prop_map(Amount::Units),
        2 => (6_u64..45).prop_map(Amount::Units),
        5 => (0_u64..=18, 0_u64..2).prop_map(|(part, more)| Amount::Part(part, more)),
        1 => Just(Amount::Units((1 << 53) - 1)),
    ]
    .boxed()
}

fn asks() -> BoxedStrategy<Ask> {
    let id = || 0_u8..3;
    let charged = prop_oneof![
        Just(Charged::Unsaid),
        (0_usize..6).prop_map(Charged::Ago),
        (1_u64..5_000).prop_map(Charged::Wrong),
    ];
    prop_oneof![
        30 => prop::option::weighted(0.95, 0_u8..6).prop_map(|lease| Ask::Check { lease }),
        5 => Just(Ask::Peek),
        5 => Just(Ask::Take),
        6 => (id(), prop::option::of(0_u32..3_000))
            .prop_map(|(id, max_wait)| Ask::Reserve { id, max_wait }),
        3 => id().prop_map(|id| Ask::Cancel { id }),
        5 => charged.prop_map(|charged| Ask::Refund { charged }),
        3 => Just(Ask::Penalize),
        1 => Just(Ask::Reset),
        1 => prop::option::of(1_u32..1_500).prop_map(|thousandths| Ask::Block { thousandths }),
        1 => Just(Ask::Unblock),
        3 => (0_u8..6).prop_map(|lease| Ask::Acquire { lease }),
        2 => (0_u8..6).prop_map(|lease| Ask::Renew { lease }),
        3 => (0_u8..6).prop_map(|lease| Ask::Release { lease }),
    ]
    .boxed()
}

/// Only checks, and operations that do not change the count of admitted requests.
fn checks() -> BoxedStrategy<Ask> {
    let checks = prop::option::weighted(0.95, 0_u8..250).prop_map(|lease| Ask::Check { lease });
    prop_oneof![20 => checks, 1 => Just(Ask::Peek)].boxed()
}

/// Steps of every operation over so many policies and keys.
pub(crate) fn steps(policies: usize, keys: u8, backwards: bool) -> BoxedStrategy<Vec<Step>> {
    steps_of(asks(), 4, policies, keys, backwards)
}

/// Steps of checks of one at a time.
pub(crate) fn check_steps(policies: usize, keys: u8, backwards: bool) -> BoxedStrategy<Vec<Step>> {
    let steps = steps_of(checks(), 1, policies, keys, backwards);
    let without_ids = |mut steps: Vec<Step>| {
        steps.iter_mut().for_each(|step| step.request_id = None);
        steps
    };
    steps.prop_map(without_ids).boxed()
}

fn small(steps: BoxedStrategy<Vec<Step>>) -> BoxedStrategy<Vec<Step>> {
    let smaller = |mut steps: Vec<Step>| {
        for step in &mut steps {
            step.request_id = None;
            if let Amount::Units(units) = &mut step.of[0].cost {
                *units %= 6;
            }
        }
        steps
    };
    steps.prop_map(smaller).boxed()
}

/// Steps that take and give back leases.
pub(crate) fn lease_steps() -> BoxedStrategy<Vec<Step>> {
    let asks = prop_oneof![
        6 => (0_u8..8).prop_map(|lease| Ask::Acquire { lease }),
        2 => (0_u8..8).prop_map(|lease| Ask::Renew { lease }),
        3 => (0_u8..8).prop_map(|lease| Ask::Release { lease }),
    ];
    small(steps_of(asks.boxed(), 1, 1, 1, false))
}

/// Steps that reserve and cancel, with some checks in between.
pub(crate) fn reservation_steps() -> BoxedStrategy<Vec<Step>> {
    let asks = prop_oneof![
        6 => (0_u8..8, prop::option::of(0_u32..3_000))
            .prop_map(|(id, max_wait)| Ask::Reserve { id, max_wait }),
        3 => (0_u8..8).prop_map(|id| Ask::Cancel { id }),
        1 => Just(Ask::Check { lease: None }),
    ];
    small(steps_of(asks.boxed(), 1, 1, 1, false))
}

fn steps_of(
    asks: BoxedStrategy<Ask>,
    most_checks: usize,
    policies: usize,
    keys: u8,
    backwards: bool,
) -> BoxedStrategy<Vec<Step>> {
    let of = move || {
        (0..policies, 0..keys, amounts()).prop_map(|(policy, key, cost)| Of { policy, key, cost })
    };
    let several = prop_oneof![
        6 => of().prop_map(|it| vec![it]),
        1 => prop::collection::vec(of(), 1..=most_checks),
    ];
    let request_id = prop::option::weighted(0.1, 0_u8..3);
    let step = (moves(backwards), asks, several, request_id).prop_map(
        |(moves, ask, mut of, request_id)| {
            if !matches!(ask, Ask::Check { .. } | Ask::Peek | Ask::Acquire { .. }) {
                of.truncate(1);
            }
            Step { moves, ask, of, request_id }
        },
    );
    prop::collection::vec(step, 1..40).boxed()
}
