//! Lookups agree with a linear search.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::{Overrides, Policies};

/// A pattern in its plain form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plain {
    Exact(String),
    Prefix(String),
    /// The kind of address, then its bits as 0 and 1.
    Network(String),
}

impl Plain {
    fn to_pattern(&self) -> String {
        match self {
            Plain::Exact(exact) => escaped(exact),
            Plain::Prefix(prefix) => format!("{}*", escaped(prefix)),
            Plain::Network(bits) => network(bits),
        }
    }

    /// How specific the pattern is, if it matches the key.
    fn rank(&self, key: &str) -> Option<(u8, usize)> {
        match self {
            Plain::Exact(exact) => (exact == key).then_some((2, 0)),
            Plain::Prefix(prefix) => key.starts_with(prefix.as_str()).then_some((1, prefix.len())),
            Plain::Network(network) => {
                bits(key)?.starts_with(network.as_str()).then_some((0, network.len()))
            }
        }
    }
}

fn escaped(key: &str) -> String {
    key.replace('\\', r"\\").replace('*', r"\*").replace('/', r"\/")
}

fn network(bits: &str) -> String {
    let (kind, bits) = bits.split_at(1);
    let whole = |most: usize| u128::from_str_radix(&format!("{bits:0<most$}"), 2).unwrap();
    let address: IpAddr = match kind {
        "4" => Ipv4Addr::from_bits(u32::try_from(whole(32)).unwrap()).into(),
        _ => Ipv6Addr::from_bits(whole(128)).into(),
    };
    format!("{address}/{}", bits.len())
}

/// Returns the bits of a key that is an address or a network.
fn bits(key: &str) -> Option<String> {
    let key = key.strip_prefix("ip=").unwrap_or(key);
    let (address, length) = match key.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<usize>().ok()?)),
        None => (key, None),
    };
    let bits = match address.parse().ok()? {
        IpAddr::V4(v4) => format!("4{:032b}", v4.to_bits()),
        IpAddr::V6(v6) => format!("6{:0128b}", v6.to_bits()),
    };
    let end = length.map_or(bits.len(), |length| length + 1);
    Some(bits[..end].to_owned())
}

/// Texts that often share a prefix.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[ab]{1,6}", 1 => "[ab*/\\\\é]{1,4}", 1 => "10\\.[01]\\.0\\.[01]"]
}

/// Bits of networks that often contain each other.
fn network_bits() -> impl Strategy<Value = String> {
    let v4 =
        ("[01]{0,4}", 0..=28_usize).prop_map(|(low, zeros)| format!("4{}{low}", "0".repeat(zeros)));
    // No IPv4-mapped addresses.
    let v6 = ("[01]{0,4}", 0..=123_usize)
        .prop_map(|(low, zeros)| format!("61{}{low}", "0".repeat(zeros)));
    prop_oneof![v4, v6]
}

fn pattern() -> impl Strategy<Value = Plain> {
    prop_oneof![
        text().prop_map(Plain::Exact),
        text().prop_map(Plain::Prefix),
        network_bits().prop_map(Plain::Network),
    ]
}

fn key() -> impl Strategy<Value = String> {
    let of_network = network_bits().prop_map(|bits| network(&bits));
    let address = network_bits().prop_map(|bits| {
        let network = network(&bits);
        network.split_once('/').unwrap().0.to_owned()
    });
    let with_source = (any::<bool>(), prop_oneof![of_network, address]);
    let with_source = with_source
        .prop_map(|(has_source, key)| if has_source { format!("ip={key}") } else { key });
    prop_oneof![text(), with_source]
}

/// Rows, each with a distinct number of requests per second.
fn rows(first: usize) -> impl Strategy<Value = BTreeMap<Plain, usize>> {
    vec(pattern(), 0..40).prop_map(move |patterns| patterns.into_iter().zip(first..).collect())
}

fn overrides(rows: &BTreeMap<Plain, usize>) -> Overrides {
    let mut builder = Overrides::builder();
    for (pattern, number) in rows {
        builder.add(&pattern.to_pattern(), &format!("{number}/s")).unwrap();
    }
    builder.build()
}

/// The most specific row that matches the key; of equal ones that of the first list.
fn expected(lists: [&BTreeMap<Plain, usize>; 2], key: &str) -> Option<usize> {
    let ranked = lists.into_iter().zip([1, 0]).flat_map(|(rows, own)| {
        rows.iter().filter_map(move |(pattern, number)| Some((pattern.rank(key)?, own, *number)))
    });
    ranked.max().map(|ranked| ranked.2)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lookups_agree_with_a_linear_search(
        own in rows(2),
        more in rows(1_000),
        keys in vec(key(), 1..60),
    ) {
        let mut policies = Policies::new();
        policies.define("api", "1/s").unwrap();
        policies.set_overrides("api", &overrides(&own)).unwrap();
        policies.set_additional_overrides("api", &overrides(&more)).unwrap();
        let matching_keys = own.keys().chain(more.keys()).map(|row| match row {
            Plain::Exact(text) | Plain::Prefix(text) => text.clone(),
            Plain::Network(bits) => network(bits),
        });
        for key in keys.into_iter().chain(matching_keys) {
            let number = expected([&own, &more], &key).unwrap_or(1);
            let variant = policies.resolve("api", key.as_bytes(), None).unwrap();
            prop_assert_eq!(variant.to_string(), format!("{}/s", number), "{}", key);
        }
    }
}
