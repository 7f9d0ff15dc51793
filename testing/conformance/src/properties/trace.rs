//! Random traces: operations, their policies and keys, and the time between them.

use proptest::prelude::*;
use proptest::sample::select;

/// How the time changes before a request. Changes are relative to earlier answers and to the windows of
/// the policy, so that requests are at the edges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    /// No change.
    Stay,
    /// Forwards by µs; backwards if negative.
    By(i64),
    /// To the latest retry time plus µs.
    Retry(i64),
    /// To the latest reset time plus µs.
    Reset(i64),
    /// By thousandths of the first window of the policy plus µs.
    Window(u32, i64),
    /// To the next multiple of the first window of the policy plus µs.
    Edge(i64),
}

/// A cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// Units.
    Units(u64),
    /// Sixteenths of the capacity of the first limit plus units.
    Part(u64, u64),
}

/// The time of the charge that a refund names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefundTime {
    /// No time.
    Unspecified,
    /// The time of a request this many answers ago.
    Ago(usize),
    /// This many µs before now, where there was no charge.
    Wrong(u64),
}

/// When the requests of a backfill were admitted, relative to the window of the limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BackfillTime {
    /// At the time of a request this many answers ago.
    Ago(usize),
    /// Thousandths of the window before now, plus µs.
    Window(u32, i64),
    /// At the latest multiple of the window this many windows ago, plus µs.
    Edge(u32, i64),
}

/// An operation. Ids are small numbers, so that they recur.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepOperation {
    Check {
        lease: Option<u8>,
    },
    Peek,
    Take,
    Reserve {
        id: u8,
        max_wait: Option<u32>,
    },
    Cancel {
        id: u8,
    },
    Refund {
        time: RefundTime,
    },
    Penalize,
    Backfill {
        limit: u8,
        time: BackfillTime,
    },
    /// Settles the check this many named checks ago, with the costs of this step, or with those of an
    /// earlier settlement.
    Settle {
        ago: usize,
        repeats: bool,
    },
    Reset,
    Block {
        thousandths: Option<u32>,
    },
    Unblock,
    Acquire {
        lease: u8,
    },
    Renew {
        lease: u8,
    },
    Release {
        lease: u8,
    },
}

/// A check; policy and key are indexes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepCheck {
    pub(crate) policy: usize,
    pub(crate) key: u8,
    pub(crate) cost: Amount,
}

/// One step of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) moves: Move,
    pub(crate) operation: StepOperation,
    pub(crate) checks: Vec<StepCheck>,
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

fn operations() -> BoxedStrategy<StepOperation> {
    let id = || 0_u8..3;
    let charged = prop_oneof![
        Just(RefundTime::Unspecified),
        (0_usize..6).prop_map(RefundTime::Ago),
        (1_u64..5_000).prop_map(RefundTime::Wrong),
    ];
    let nudge = || select(vec![-1_i64, 0, 0, 1]);
    let admitted = prop_oneof![
        (0_usize..6).prop_map(BackfillTime::Ago),
        (0_u32..2_200, nudge()).prop_map(|(part, more)| BackfillTime::Window(part, more)),
        (0_u32..3, nudge()).prop_map(|(ago, more)| BackfillTime::Edge(ago, more)),
    ];
    let limit = prop_oneof![6 => Just(0_u8), 3 => 1_u8..4];
    prop_oneof![
        30 => prop::option::weighted(0.95, 0_u8..6).prop_map(|lease| StepOperation::Check { lease }),
        5 => Just(StepOperation::Peek),
        5 => Just(StepOperation::Take),
        6 => (id(), prop::option::of(0_u32..3_000))
            .prop_map(|(id, max_wait)| StepOperation::Reserve { id, max_wait }),
        3 => id().prop_map(|id| StepOperation::Cancel { id }),
        5 => charged.prop_map(|time| StepOperation::Refund { time }),
        3 => Just(StepOperation::Penalize),
        5 => (limit, admitted).prop_map(|(limit, time)| StepOperation::Backfill { limit, time }),
        1 => Just(StepOperation::Reset),
        1 => prop::option::of(1_u32..1_500).prop_map(|thousandths| StepOperation::Block { thousandths }),
        1 => Just(StepOperation::Unblock),
        3 => (0_u8..6).prop_map(|lease| StepOperation::Acquire { lease }),
        2 => (0_u8..6).prop_map(|lease| StepOperation::Renew { lease }),
        3 => (0_u8..6).prop_map(|lease| StepOperation::Release { lease }),
    ]
    .boxed()
}

/// Only checks and peeks.
fn checks() -> BoxedStrategy<StepOperation> {
    let checks =
        prop::option::weighted(0.95, 0_u8..250).prop_map(|lease| StepOperation::Check { lease });
    prop_oneof![20 => checks, 1 => Just(StepOperation::Peek)].boxed()
}

/// Steps of every operation.
pub(crate) fn steps(policies: usize, keys: u8, backwards: bool) -> BoxedStrategy<Vec<Step>> {
    build_steps(operations(), 4, policies, keys, backwards)
}

/// Steps of single checks without request ids.
pub(crate) fn check_steps(policies: usize, keys: u8, backwards: bool) -> BoxedStrategy<Vec<Step>> {
    let steps = build_steps(checks(), 1, policies, keys, backwards);
    let without_ids = |mut steps: Vec<Step>| {
        steps.iter_mut().for_each(|step| step.request_id = None);
        steps
    };
    steps.prop_map(without_ids).boxed()
}

fn with_small_costs(steps: BoxedStrategy<Vec<Step>>) -> BoxedStrategy<Vec<Step>> {
    let smaller = |mut steps: Vec<Step>| {
        for step in &mut steps {
            step.request_id = None;
            if let Amount::Units(units) = &mut step.checks[0].cost {
                *units %= 6;
            }
        }
        steps
    };
    steps.prop_map(smaller).boxed()
}

/// Steps that acquire, renew and release leases.
pub(crate) fn lease_steps() -> BoxedStrategy<Vec<Step>> {
    let operations = prop_oneof![
        6 => (0_u8..8).prop_map(|lease| StepOperation::Acquire { lease }),
        2 => (0_u8..8).prop_map(|lease| StepOperation::Renew { lease }),
        3 => (0_u8..8).prop_map(|lease| StepOperation::Release { lease }),
    ];
    with_small_costs(build_steps(operations.boxed(), 1, 1, 1, false))
}

/// Steps that reserve and cancel, and some checks.
pub(crate) fn reservation_steps() -> BoxedStrategy<Vec<Step>> {
    let operations = prop_oneof![
        6 => (0_u8..8, prop::option::of(0_u32..3_000))
            .prop_map(|(id, max_wait)| StepOperation::Reserve { id, max_wait }),
        3 => (0_u8..8).prop_map(|id| StepOperation::Cancel { id }),
        1 => Just(StepOperation::Check { lease: None }),
    ];
    with_small_costs(build_steps(operations.boxed(), 1, 1, 1, false))
}

/// Steps of checks with request ids and settlements of them, and some of every other operation.
pub(crate) fn settlement_steps(
    policies: usize,
    keys: u8,
    backwards: bool,
) -> BoxedStrategy<Vec<Step>> {
    let operations = prop_oneof![
        6 => (0_u8..6).prop_map(|lease| StepOperation::Check { lease: Some(lease) }),
        6 => (0_usize..4, any::<bool>())
            .prop_map(|(ago, repeats)| StepOperation::Settle { ago, repeats }),
        2 => operations(),
    ];
    let name_checks = |(mut steps, named): (Vec<Step>, Vec<Option<u8>>)| {
        for (step, named) in steps.iter_mut().zip(named) {
            if matches!(step.operation, StepOperation::Check { .. }) {
                step.request_id = named;
            }
        }
        steps
    };
    let named = prop::option::weighted(0.8, 0_u8..200);
    let steps = build_steps(operations.boxed(), 4, policies, keys, backwards);
    (steps, prop::collection::vec(named, 40)).prop_map(name_checks).boxed()
}

fn build_steps(
    operations: BoxedStrategy<StepOperation>,
    max_checks: usize,
    policies: usize,
    keys: u8,
    backwards: bool,
) -> BoxedStrategy<Vec<Step>> {
    let check = move || {
        (0..policies, 0..keys, amounts()).prop_map(|(policy, key, cost)| StepCheck {
            policy,
            key,
            cost,
        })
    };
    let several = prop_oneof![
        6 => check().prop_map(|check| vec![check]),
        1 => prop::collection::vec(check(), 1..=max_checks),
    ];
    let request_id = prop::option::weighted(0.1, 0_u8..3);
    let step = (moves(backwards), operations, several, request_id).prop_map(
        |(moves, operation, mut checks, request_id)| {
            if !matches!(
                operation,
                StepOperation::Check { .. } | StepOperation::Peek | StepOperation::Acquire { .. }
            ) {
                checks.truncate(1);
            }
            Step { moves, operation, checks, request_id }
        },
    );
    prop::collection::vec(step, 1..40).boxed()
}
