//! I-CONFIG: a policy that changes grants no more than the larger of its forms, and from then on
//! no more than the new one.

use proptest::prelude::*;
use tollgate_core::{Limit, Policy};

use super::bound::{admitted, spans_within};
use super::play::{count, play, requests, story};
use super::player::{Player, START};
use super::runner::{Coverage, Plan, Violation, run};
use super::strategies::{limits, renumbered};
use super::trace::check_steps;
use crate::system::SystemUnderTest;

/// One limit in two forms, and the limit that is the larger of them in every number.
fn two_forms() -> BoxedStrategy<[Limit; 3]> {
    let numbers = || (1_u64..20, 1_u64..20);
    (limits(), numbers(), numbers())
        .prop_filter_map("each form is valid", |(limit, a, b)| {
            let form = |(count, capacity): (u64, u64)| -> Option<Limit> {
                renumbered(*limit.spec(), count, capacity, false).build().ok()
            };
            Some([form(a)?, form(b)?, form((a.0.max(b.0), a.1.max(b.1)))?])
        })
        .boxed()
}

/// Two processes with two forms of one limit, in turn on one key, admit no more than the larger
/// form in any span; where one is faster and the other has the greater capacity, no more than a
/// limit with both.
///
/// # Errors
/// The least trace that admits more.
pub fn two_forms_admit_the_larger(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    run(plan, &(two_forms(), check_steps(2, 1, false)), |([a, b, larger], steps), seen| {
        let form = |x| Policy::new("p", [x]).map_err(|error| error.to_string());
        let policies = [form(a)?, form(b)?];
        let asked = requests(&policies, Player::at(START, false), &steps);
        let answers = play(system, &asked);
        count(seen, &answers);
        spans_within(&larger, &admitted(&asked, &answers)).map_err(|error| story(&asked) + &error)
    })
}

/// Once a policy has changed for good, no span from then on admits more than its new form.
///
/// # Errors
/// The least trace that admits more.
pub fn a_change_holds_from_then_on(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = (two_forms(), check_steps(2, 1, false));
    run(plan, &cases, |([a, b, _], mut steps), seen| {
        let form = |x| Policy::new("p", [x]).map_err(|error| error.to_string());
        let policies = [form(a)?, form(b)?];
        steps.sort_by_key(|step| step.of[0].policy);
        let new = steps.partition_point(|step| step.of[0].policy == 0);
        let asked = requests(&policies, Player::at(START, false), &steps);
        let answers = play(system, &asked);
        count(seen, &answers);
        spans_within(&b, &admitted(&asked[new..], &answers[new..]))
            .map_err(|error| story(&asked) + &error)
    })
}
