//! Rules that stand in for others.

use super::{BOTH, check, staged};

#[test]
fn a_rule_may_raise_a_limit_and_leaves_the_other_as_it_was() {
    for charging in BOTH {
        staged(charging, |stage| {
            check(
                stage,
                "
                /two who=a plan=banned => 429 0 of 0
                /four who=a plan=banned from=gate to=pardon => 200 1 of 2
                /four who=a plan=banned from=gate to=pardon => 200 0 of 2
                /four who=a plan=banned from=gate to=pardon => 429 0 of 2
                /two who=a plan=banned => 429 0 of 0

                /four who=b plan=basic from=gate to=basic => 200 1 of 2
                /four who=b plan=basic from=gate to=basic => 200 0 of 2
                /four who=b plan=basic from=gate to=basic => 429 0 of 2
                /four who=b plan=basic from=gate to=unknown => 200 0 of 1
                /four who=b plan=basic from=gate to=unknown => 429 0 of 1
                /four who=b plan=basic from=gate to=basic => 429 0 of 2
            ",
            );
        });
    }
}

#[test]
fn a_rule_may_stand_in_for_several() {
    // The third of the reference is charged under both, and Envoy tells the first of them.
    for (charging, told) in [("atomic", 2), ("reference", 3)] {
        staged(charging, |stage| {
            check(
                stage,
                &format!(
                    "
                /five who=a plan=basic from=gate to=detour category=account => 200 3 of 4
                /five who=a plan=basic from=gate to=detour category=account => 200 2 of 4
                /five who=a plan=basic from=gate to=detour category=account => 200 1 of 4
                /five who=a plan=basic from=gate to=detour category=account => 200 0 of 4
                /five who=a plan=basic from=gate to=detour category=account => 429 0 of 4
                /two who=b plan=basic => 200 0 of 1
                /two who=b plan=basic => 429 0 of 1
                /four who=c plan=other from=gate to=detour => 200 1 of 2
                /four who=c plan=other from=gate to=detour => 200 0 of 2
                /four who=c plan=other from=gate to=detour => 429 0 of {told}
                /five who=a plan=basic from=gate to=detour category=account => 429 0 of 4
            "
                ),
            );
        });
    }
}

#[test]
fn a_request_that_one_limit_denies_is_charged_under_another_only_as_the_reference_does() {
    for (charging, after) in [("atomic", "200 0 of 1"), ("reference", "429 0 of 1")] {
        staged(charging, |stage| {
            check(
                stage,
                &format!(
                    "
                /four who=a plan=banned from=gate to=plain => 429 0 of 0
                /four from=gate to=plain => {after}
                /four from=gate to=plain => 429 0 of 1
            "
                ),
            );
        });
    }
}
