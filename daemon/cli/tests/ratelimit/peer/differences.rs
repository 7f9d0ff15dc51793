//! The differences of responses that `docs/ratelimit.md` explains.

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};

/// Replaces in the original's response what differs from ours on purpose.
pub(crate) fn apply(original: &mut RateLimitResponse, ours: &RateLimitResponse) {
    let mut has_reset = false;
    for (theirs, ours) in original.statuses.iter_mut().zip(&ours.statuses) {
        let Some(limit) = &ours.current_limit else { continue };
        let is_zero = limit.requests_per_unit == 0 && ours.duration_until_reset.is_none();
        let is_unused = limit.requests_per_unit == ours.limit_remaining
            && ours.duration_until_reset.is_some_and(|reset| reset.seconds == 0);
        if is_zero || is_unused {
            assert!(theirs.duration_until_reset.is_some_and(|reset| reset.seconds > 0));
            theirs.duration_until_reset = ours.duration_until_reset;
            has_reset = true;
        }
    }
    for (theirs, ours) in
        original.response_headers_to_add.iter_mut().zip(&ours.response_headers_to_add)
    {
        if has_reset && theirs.key == "RateLimit-Reset" && ours.value == "0" {
            theirs.value = "0".to_owned();
        }
    }
    if let Some(metadata) = &mut original.dynamic_metadata {
        // Removed in March 2026.
        metadata.fields.remove("quotaModeEnabled");
        join_spaces(metadata);
    }
}

/// Go prints messages with one or two spaces between fields, at random.
fn join_spaces(metadata: &mut Struct) {
    for value in metadata.fields.values_mut() {
        join_spaces_of(value);
    }
}

fn join_spaces_of(value: &mut Value) {
    match &mut value.kind {
        Some(Kind::StringValue(text)) => *text = text.replace("  ", " "),
        Some(Kind::StructValue(fields)) => join_spaces(fields),
        Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(join_spaces_of),
        _ => {}
    }
}
