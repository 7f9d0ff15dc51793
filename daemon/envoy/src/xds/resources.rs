//! Parsing the resources of a control plane.

use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::RateLimitConfig;
use prost::Message;

use tollgate_descriptors::{Domains, ReadOptions};

/// The type of the requested resources.
pub(super) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// The most resources of a response.
const MAX_RESOURCES: usize = 10_000;
/// The longest rejection, in bytes.
const MAX_MESSAGE_LEN: usize = 4_096;

/// Parses all resources.
pub(super) fn parse(resources: &[Any], options: &ReadOptions) -> Result<Domains, String> {
    if resources.len() > MAX_RESOURCES {
        let count = resources.len();
        return Err(format!("{count} resources, more than the maximum of {MAX_RESOURCES}"));
    }
    let configs: Result<Vec<_>, _> = resources.iter().enumerate().map(decode).collect();
    Domains::from_xds(&configs.map_err(truncated)?, options)
        .map_err(|error| truncated(error.to_string()))
}

fn decode((index, resource): (usize, &Any)) -> Result<RateLimitConfig, String> {
    let kind = &resource.type_url;
    if kind != TYPE_URL {
        return Err(format!("resource {index} has the type {kind:?}; expected {TYPE_URL}"));
    }
    RateLimitConfig::decode(&*resource.value)
        .map_err(|error| format!("resource {index} cannot be decoded: {error}"))
}

/// Bounds a message, which may quote what the server sent.
fn truncated(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_LEN {
        let mut end = MAX_MESSAGE_LEN;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_resources_are_rejected_with_their_index() {
        let any = |type_url: &str, value: &[u8]| Any {
            type_url: type_url.to_owned(),
            value: value.to_vec(),
        };
        let long = "x".repeat(1_000_000);
        for (resources, expected) in [
            (vec![any("type.googleapis.com/other", b"")], "resource 0 has the type \"type.goo"),
            (vec![any(&long, b"")], "resource 0 has the type \"xxx"),
            (vec![any(TYPE_URL, b"\xff\xff\xff")], "resource 0 cannot be decoded: "),
            (vec![any(TYPE_URL, &nested(200))], "resource 0 cannot be decoded: "),
            (
                vec![Any::default(); MAX_RESOURCES + 1],
                "10001 resources, more than the maximum of 10000",
            ),
        ] {
            let error = parse(&resources, &ReadOptions::default()).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(error.len() <= MAX_MESSAGE_LEN + "…".len());
        }
    }

    /// Nested descriptors.
    fn nested(depth: usize) -> Vec<u8> {
        // Field 4 of a descriptor and field 3 of the configuration contain descriptors.
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
