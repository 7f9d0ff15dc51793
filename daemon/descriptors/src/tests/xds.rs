//! Resources of a control plane.

use std::collections::HashMap;

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitReplace, RateLimitUnit,
};

use super::*;

fn policy(requests_per_unit: u32, unit: RateLimitUnit) -> RateLimitPolicy {
    RateLimitPolicy { requests_per_unit, unit: i32::from(unit), ..RateLimitPolicy::default() }
}

fn descriptor(key: &str, value: &str, rate_limit: Option<RateLimitPolicy>) -> RateLimitDescriptor {
    RateLimitDescriptor {
        key: key.to_owned(),
        value: value.to_owned(),
        rate_limit,
        ..RateLimitDescriptor::default()
    }
}

fn config(domain: &str, descriptors: Vec<RateLimitDescriptor>) -> RateLimitConfig {
    RateLimitConfig { name: format!("{domain}-config"), domain: domain.to_owned(), descriptors }
}

fn read(configs: &[RateLimitConfig]) -> Result<Domains, DescriptorConfigError> {
    Domains::from_xds(configs, &ReadOptions::default())
}

#[test]
fn resources_are_equivalent_to_files() {
    let outer = RateLimitDescriptor {
        descriptors: vec![
            descriptor("inner", "", Some(policy(2, RateLimitUnit::Week))),
            RateLimitDescriptor {
                descriptors: vec![descriptor("leaf", "l*", Some(policy(0, RateLimitUnit::Year)))],
                ..descriptor("deep", "d", None)
            },
        ],
        ..descriptor("outer", "o", Some(policy(1, RateLimitUnit::Second)))
    };
    let named = RateLimitPolicy {
        name: "n".to_owned(),
        replaces: vec![RateLimitReplace { name: "m".to_owned() }],
        ..policy(3, RateLimitUnit::Month)
    };
    let named = RateLimitDescriptor {
        shadow_mode: true,
        quota_mode: true,
        detailed_metric: true,
        ..descriptor("named", "", Some(named))
    };
    let free = RateLimitPolicy { unlimited: true, ..RateLimitPolicy::default() };
    let free = descriptor("free", "", Some(free));
    let domains = read(&[config("d", vec![outer, named, free]), config("e", vec![])]).unwrap();
    check(
        &domains,
        "d",
        &[
            ("outer=o", "d.outer_o 1/SECOND"),
            ("outer=o inner=1", "d.outer_o.inner 2/WEEK"),
            ("outer=o deep=d", "no rule"),
            ("outer=o deep=d leaf=l1", "d.outer_o.deep_d.leaf_l* 0/YEAR"),
            ("named=1", "d.named_1 3/MONTH name n replaces m shadow quota"),
            ("free=1", "d.free unlimited"),
        ],
    );
    check(&domains, "e", &[("outer=o", "no rule")]);
    assert_eq!(found(&domains, "f", "outer=o"), "unknown domain");
}

#[test]
fn resources_are_validated_like_files() {
    let unit = |unit| RateLimitPolicy { unit, ..RateLimitPolicy::default() };
    let both = RateLimitPolicy { unlimited: true, ..policy(1, RateLimitUnit::Day) };
    let rows = [
        (vec![config("", vec![])], "-config: config file cannot have empty domain"),
        (
            vec![config("d", vec![]), config("d", vec![])],
            "d-config: duplicate domain 'd' in config file",
        ),
        (vec![config("d", vec![descriptor("", "v", None)])], "d-config: descriptor has empty key"),
        (
            vec![config("d", vec![descriptor("k", "", None), descriptor("k", "", None)])],
            "d-config: duplicate descriptor composite key 'd.k'",
        ),
        (
            vec![config("d", vec![descriptor("k", "", Some(unit(0)))])],
            "d-config: invalid rate limit unit 'UNKNOWN'",
        ),
        (
            vec![config("d", vec![descriptor("k", "", Some(unit(99)))])],
            "d-config: invalid rate limit unit '99'",
        ),
        (
            vec![config("d", vec![descriptor("k", "", Some(both))])],
            "d-config: should not specify rate limit unit when unlimited",
        ),
    ];
    for (configs, message) in rows {
        assert_eq!(read(&configs).unwrap_err().to_string(), message);
    }
}

#[test]
fn nesting_of_resources_is_bounded() {
    let nested = |depth| {
        let leaf = descriptor("k", "", None);
        (1..depth).fold(leaf, |inner, _| RateLimitDescriptor {
            descriptors: vec![inner],
            ..descriptor("k", "", None)
        })
    };
    assert!(read(&[config("d", vec![nested(100)])]).is_ok());
    let error = read(&[config("d", vec![nested(101)])]).unwrap_err().to_string();
    assert_eq!(error, "d-config: descriptors may be nested at most 100 deep");
}

#[test]
fn nonempty_metadata_is_passed_on() {
    let text = Value { kind: Some(Kind::StringValue("one".to_owned())) };
    let full = Struct { fields: HashMap::from([("name".to_owned(), text)]) };
    for (metadata, is_kept) in [(full, true), (Struct::default(), false)] {
        let sent = RateLimitDescriptor {
            metadata: Some(metadata.clone()),
            ..descriptor("k", "", Some(policy(1, RateLimitUnit::Day)))
        };
        let domains = read(&[config("d", vec![sent])]).unwrap();
        let Lookup::Rule(value) = domains.find("d", &[("k", "v")]) else { panic!("no rule") };
        assert_eq!(value.rule.metadata.as_deref(), is_kept.then_some(&metadata));
    }
}
