//! Rules that replace others.

use super::{CHARGING_MODES, check_in};

#[test]
fn replacement_raises_a_limit_without_affecting_other_requests() {
    check_in(
        &CHARGING_MODES,
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
}

#[test]
fn rule_replaces_several_others() {
    // With reference charging, the third request is charged under both, and Envoy reports the
    // first.
    for (charging, limit) in [("atomic", 2), ("reference", 3)] {
        check_in(
            &[charging],
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
                /four who=c plan=other from=gate to=detour => 429 0 of {limit}
                /five who=a plan=basic from=gate to=detour category=account => 429 0 of 4
                "
            ),
        );
    }
}

#[test]
fn denied_request_is_charged_under_other_limits_only_with_reference_charging() {
    for (charging, after) in [("atomic", "200 0 of 1"), ("reference", "429 0 of 1")] {
        check_in(
            &[charging],
            &format!(
                "
                /four who=a plan=banned from=gate to=plain => 429 0 of 0
                /four from=gate to=plain => {after}
                /four from=gate to=plain => 429 0 of 1
                "
            ),
        );
    }
}
