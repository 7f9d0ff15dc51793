//! The names of metrics.

use super::*;

const MINUTE: &str = "rate_limit: {unit: minute, requests_per_unit: 9}";

#[test]
fn detailed_metric_contains_every_value() {
    let shop = read(&format!(
        "domain: shop
descriptors:
  - {{key: tenant, detailed_metric: true, {MINUTE}}}
  - {{key: tenant, value: acme-and-sons, {MINUTE}}}
  - key: plan
    detailed_metric: true
    {MINUTE}
    descriptors:
      - {{key: user, detailed_metric: true}}
      - {{key: user, value: robot, detailed_metric: true, {MINUTE}}}
  - key: plan
    value: pro
    detailed_metric: true
    {MINUTE}
    descriptors:
      - {{key: user, value: robot, detailed_metric: true, {MINUTE}}}
  - key: bare
    {MINUTE}
    descriptors: [{{key: inner, {MINUTE}}}]
  - key: full
    detailed_metric: true
    {MINUTE}
    descriptors: [{{key: inner, detailed_metric: true, {MINUTE}}}]
  - key: half
    {MINUTE}
    descriptors: [{{key: inner, detailed_metric: true, {MINUTE}}}]
"
    ));
    check(
        &shop,
        "shop",
        &[
            ("full=1", "shop.full_1 9/MINUTE"),
            ("bare=1", "shop.bare 9/MINUTE"),
            ("full=1 inner=2", "shop.full_1.inner_2 9/MINUTE"),
            ("bare=1 inner=2", "shop.bare.inner 9/MINUTE"),
            ("half=1 inner=2", "shop.half_1.inner_2 9/MINUTE"),
            ("half=1 inner=", "shop.half_1.inner_ 9/MINUTE"),
            ("tenant=x", "shop.tenant_x 9/MINUTE"),
            ("tenant=acme-and-sons", "shop.tenant_acme-and-sons 9/MINUTE"),
            ("plan=free", "shop.plan_free 9/MINUTE"),
            ("plan=free user=robot", "shop.plan_free.user_robot 9/MINUTE"),
            ("plan=pro user=robot", "shop.plan_pro.user_robot 9/MINUTE"),
            ("plan=free user=ann", "no rule"),
        ],
    );
}

/// Three levels, each with `value_to_metric` or not; the last has the limit.
fn levels(first: &str, second: &str, third: &str) -> Domains {
    read(&format!(
        "domain: d
descriptors:
  - key: route
    {first}
    descriptors:
      - key: method
        {second}
        descriptors:
          - key: user
            {third}
            {MINUTE}"
    ))
}

#[test]
fn value_to_metric_adds_the_value_of_its_level() {
    const MEASURED: &str = "value_to_metric: true";
    let both = levels(MEASURED, MEASURED, "");
    check(
        &both,
        "d",
        &[
            ("route=draw method=GET user=1", "d.route_draw.method_GET.user 9/MINUTE"),
            ("route= method=GET user=1", "d.route.method_GET.user 9/MINUTE"),
            ("route=draw method= user=1", "d.route_draw.method.user 9/MINUTE"),
            ("route= method= user=1", "d.route.method.user 9/MINUTE"),
        ],
    );
    let rows = [
        (levels(MEASURED, "", ""), "d.route_draw.method.user 9/MINUTE"),
        (levels("", MEASURED, ""), "d.route.method_GET.user 9/MINUTE"),
        (levels("", "", MEASURED), "d.route.method.user_1 9/MINUTE"),
        (levels("", "", ""), "d.route.method.user 9/MINUTE"),
        (
            levels(MEASURED, MEASURED, "detailed_metric: true"),
            "d.route_draw.method_GET.user_1 9/MINUTE",
        ),
        (levels("", "", "detailed_metric: true"), "d.route_draw.method_GET.user_1 9/MINUTE"),
        (levels(MEASURED, "value: GET", ""), "d.route_draw.method_GET.user 9/MINUTE"),
        (
            levels(MEASURED, "value: GET\n        value_to_metric: true", ""),
            "d.route_draw.method_GET.user 9/MINUTE",
        ),
        (
            levels(MEASURED, "value: G*\n        value_to_metric: true", ""),
            "d.route_draw.method_GET.user 9/MINUTE",
        ),
        (levels(MEASURED, "value: G*", ""), "d.route_draw.method_G*.user 9/MINUTE"),
        (levels("value: dr*", MEASURED, ""), "d.route_dr*.method_GET.user 9/MINUTE"),
        (levels("value: dr*", "", ""), "d.route_dr*.method.user 9/MINUTE"),
    ];
    for (domains, expected) in rows {
        assert_eq!(found(&domains, "d", "route=draw method=GET user=1"), expected);
    }
}

#[test]
fn metrics_of_wildcards_do_not_depend_on_the_position_of_the_star() {
    for (value, fits) in [("foo*", "foo1"), ("foo*bar", "foo1bar"), ("foo*bar*", "foo1bar2")] {
        let rows = [
            ("", format!("d.wild_{value} 9/MINUTE")),
            ("value_to_metric: true,", format!("d.wild_{fits} 9/MINUTE")),
            ("share_threshold: true,", format!("d.wild_{value} 9/MINUTE")),
            ("share_threshold: true, value_to_metric: true,", format!("d.wild_{value} 9/MINUTE")),
            ("share_threshold: true, detailed_metric: true,", format!("d.wild_{value} 9/MINUTE")),
            ("detailed_metric: true,", format!("d.wild_{fits} 9/MINUTE")),
        ];
        for (flags, expected) in rows {
            let text = format!(
                "{{domain: d, descriptors: [{{key: wild, value: {value}, {flags} {MINUTE}}}]}}"
            );
            assert_eq!(found(&read(&text), "d", &format!("wild={fits}")), expected, "{text}");
        }
    }
}

/// The structures in the tests of envoyproxy/ratelimit for shared counters; the tests of keys use
/// them too.
pub(super) fn shared() -> Domains {
    let limit = |count| format!("rate_limit: {{unit: minute, requests_per_unit: {count}}}");
    let share = "share_threshold: true";
    read(&format!(
        "domain: d
descriptors:
  - {{key: file, value: f/*, {share}, {}}}
  - key: in
    value: outer
    descriptors: [{{key: file, value: n/*, {share}, {}}}]
  - key: file
    value: top/*
    {share}
    descriptors: [{{key: file, value: n/*, {share}, {}}}]
  - key: route
    value: api/*
    {share}
    value_to_metric: true
    descriptors: [{{key: method, {}}}]
  - key: service
    value: svc/*
    {share}
    descriptors: [{{key: endpoint, detailed_metric: true, {}}}]
  - key: path
    value: p/*
    {share}
    descriptors:
      - key: leaf
        value: l/*
        share_threshold: false
        descriptors: [{{key: type, {}}}]
  - key: doc
    value: one
    {}
  - {{key: doc, value: o*, {share}, {}}}
  - {{key: mid, value: /api*v1, {share}, value_to_metric: true, {}}}
  - {{key: many, value: svc*ep*rpc, {share}, {}}}",
        limit(1),
        limit(2),
        limit(3),
        limit(4),
        limit(5),
        limit(6),
        limit(7),
        limit(8),
        limit(9),
        limit(10)
    ))
}

#[test]
fn share_threshold_measures_the_pattern() {
    check(
        &shared(),
        "d",
        &[
            ("file=f/a.pdf", "d.file_f/* 1/MINUTE"),
            ("file=f/b.csv", "d.file_f/* 1/MINUTE"),
            ("in=outer file=n/1", "d.in_outer.file_n/* 2/MINUTE"),
            ("file=top/1 file=n/2", "d.file_top/*.file_n/* 3/MINUTE"),
            ("route=api/v1 method=GET", "d.route_api/*.method 4/MINUTE"),
            ("service=svc/u endpoint=get", "d.service_svc/*.endpoint_get 5/MINUTE"),
            ("service=svc/u endpoint=", "d.service_svc/*.endpoint 5/MINUTE"),
            ("path=p/a leaf=l/b type=pdf", "d.path_p/*.leaf_l/*.type 6/MINUTE"),
            ("doc=one", "d.doc_one 7/MINUTE"),
            ("doc=other", "d.doc_o* 8/MINUTE"),
            ("mid=/api/v1", "d.mid_/api*v1 9/MINUTE"),
            ("mid=/api/v2", "no rule"),
            ("many=svcAepBrpc", "d.many_svc*ep*rpc 10/MINUTE"),
            ("many=svceprpc", "d.many_svc*ep*rpc 10/MINUTE"),
            ("many=svcABCrpc", "no rule"),
        ],
    );
}
