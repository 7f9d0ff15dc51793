//! What a control plane sent: resources to domains.

use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::RateLimitConfig;
use prost::Message;

use tollgate_descriptors::{Domains, ReadOptions};

/// The type of all resources that are asked for.
pub(super) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// The most resources of an answer.
const MAX_RESOURCES: usize = 10_000;
/// The most bytes of a refusal.
const MAX_REPORTED: usize = 4_096;

/// The domains of all resources, or why not.
pub(super) fn read(resources: &[Any], options: &ReadOptions) -> Result<Domains, String> {
    if resources.len() > MAX_RESOURCES {
        return Err(format!("{} resources, and {MAX_RESOURCES} at most are read", resources.len()));
    }
    let configs: Result<Vec<_>, _> = resources.iter().enumerate().map(config).collect();
    Domains::from_xds(&configs.map_err(bounded)?, options)
        .map_err(|error| bounded(error.to_string()))
}

fn config((at, resource): (usize, &Any)) -> Result<RateLimitConfig, String> {
    if resource.type_url != TYPE_URL {
        let of = &resource.type_url;
        return Err(format!("resource {at} is of {of:?}; only {TYPE_URL} is read"));
    }
    let read = RateLimitConfig::decode(&*resource.value);
    read.map_err(|error| format!("resource {at} cannot be read: {error}"))
}

/// A message may quote what the server sent.
fn bounded(mut said: String) -> String {
    if said.len() > MAX_REPORTED {
        let end = (0..=MAX_REPORTED).rev().find(|at| said.is_char_boundary(*at));
        said.truncate(end.unwrap_or_default());
        said.push('…');
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_configuration_is_refused_with_the_place() {
        let any = |type_url: &str, value: &[u8]| Any {
            type_url: type_url.to_owned(),
            value: value.to_vec(),
        };
        let long = "x".repeat(1_000_000);
        for (resources, expected) in [
            (vec![any("type.googleapis.com/other", b"")], "resource 0 is of \"type.goo"),
            (vec![any(&long, b"")], "resource 0 is of \"xxx"),
            (vec![any(TYPE_URL, b"\xff\xff\xff")], "resource 0 cannot be read: "),
            (vec![any(TYPE_URL, &nested(200))], "resource 0 cannot be read: "),
            (vec![Any::default(); MAX_RESOURCES + 1], "10001 resources, and 10000 at most"),
        ] {
            let why = read(&resources, &ReadOptions::default()).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
            assert!(why.len() <= MAX_REPORTED + "…".len());
        }
    }

    /// A descriptor in a descriptor in a descriptor.
    fn nested(depth: usize) -> Vec<u8> {
        // Field 4 of a descriptor and field 3 of the configuration, each with what is in it.
        let mut bytes = Vec::new();
        for level in (0..depth).rev() {
            let tag = if level == 0 { 0x1a } else { 0x22 };
            let mut outer = vec![tag];
            let length = bytes.len();
            prost::encode_length_delimiter(length, &mut outer).unwrap();
            outer.extend_from_slice(&bytes);
            bytes = outer;
        }
        bytes
    }
}
