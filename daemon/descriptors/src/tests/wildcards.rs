//! Values with `*`.

use super::*;

const ROUTES: &str = "
domain: d
descriptors:
  - { key: none, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: plain, value: foo, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: end, value: foo*, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: mid, value: bar*b, rate_limit: { unit: minute, requests_per_unit: 4 } }
  - { key: many, value: foo*bar*baz, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: both, value: '*in*', rate_limit: { unit: minute, requests_per_unit: 6 } }
  - key: outer
    value: one
    descriptors:
      - { key: end, value: goo*, rate_limit: { unit: minute, requests_per_unit: 7 } }
  - { key: order, value: a*, rate_limit: { unit: minute, requests_per_unit: 8 } }
  - { key: order, value: ab*, rate_limit: { unit: minute, requests_per_unit: 9 } }
  - { key: order, value: abc, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: order, rate_limit: { unit: minute, requests_per_unit: 11 } }
  - { key: dead, value: a* }
  - { key: dead, rate_limit: { unit: minute, requests_per_unit: 12 } }
  - { key: pre*, rate_limit: { unit: minute, requests_per_unit: 13 } }
  - { key: twice, value: '**', rate_limit: { unit: minute, requests_per_unit: 14 } }
  - { key: '*_', rate_limit: { unit: minute, requests_per_unit: 15 } }
";

#[test]
fn star_matches_any_text() {
    check(
        &read(ROUTES),
        "d",
        &[
            ("none=foo1", "d.none 1/MINUTE"),
            ("none=foo2", "d.none 1/MINUTE"),
            ("plain=foo1", "no rule"),
            ("end=foo1", "d.end_foo* 3/MINUTE"),
            ("end=foo", "d.end_foo* 3/MINUTE"),
            ("end=foo*", "d.end_foo* 3/MINUTE"),
            ("end=bar", "no rule"),
            ("end=goo1", "no rule"),
            ("outer=one end=goo2", "d.outer_one.end_goo* 7/MINUTE"),
            ("mid=barab", "d.mid_bar*b 4/MINUTE"),
            ("mid=bar123b", "d.mid_bar*b 4/MINUTE"),
            ("mid=barb", "d.mid_bar*b 4/MINUTE"),
            ("mid=bara", "no rule"),
            ("mid=xbarb", "no rule"),
            // The parts before and after the star must not overlap.
            ("mid=bar", "no rule"),
            ("many=foo123bar456baz", "d.many_foo*bar*baz 5/MINUTE"),
            ("many=foobarbaz", "d.many_foo*bar*baz 5/MINUTE"),
            ("many=foo123baz", "no rule"),
            ("many=bar456baz", "no rule"),
            ("many=foobarba", "no rule"),
            ("many=foobabaz", "no rule"),
            ("both=in", "d.both_*in* 6/MINUTE"),
            ("both=within.", "d.both_*in* 6/MINUTE"),
            ("both=out", "no rule"),
            ("twice=", "d.twice_** 14/MINUTE"),
            ("twice=å→", "d.twice_** 14/MINUTE"),
        ],
    );
}

#[test]
fn exact_values_precede_wildcards_and_wildcards_precede_keys() {
    check(
        &read(ROUTES),
        "d",
        &[
            ("order=abc", "d.order_abc 10/MINUTE"),
            ("order=abd", "d.order_a* 8/MINUTE"),
            ("order=b", "d.order 11/MINUTE"),
            // A descriptor without a limit takes precedence nevertheless.
            ("dead=a1", "no rule"),
            ("dead=b1", "d.dead 12/MINUTE"),
            // The star of a key extends into the value; the stat is that of envoyproxy/ratelimit.
            ("prefix=x", "d.prefix_pre* 13/MINUTE"),
            ("pre=", "d.pre_pre* 13/MINUTE"),
            ("*=_", "d.* 15/MINUTE"),
            ("none_=", "d.none__*_ 15/MINUTE"),
        ],
    );
}
