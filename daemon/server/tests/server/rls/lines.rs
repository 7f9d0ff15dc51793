//! Messages of the rate limit service as lines of text.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::UInt64Value;

/// Reads `domain [+hits] | key=value key=value [+hits|-hits] [limit 5/MINUTE] | …`.
pub(crate) fn request_of(line: &str) -> RateLimitRequest {
    let mut parts = line.split('|').map(str::trim);
    let head = parts.next().unwrap();
    let (domain, hits) = head.split_once(" +").unwrap_or((head, "0"));
    RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: parts.map(descriptor_of).collect(),
        hits_addend: hits.parse().unwrap(),
    }
}

fn descriptor_of(text: &str) -> RateLimitDescriptor {
    let mut descriptor = RateLimitDescriptor::default();
    for word in text.split_whitespace() {
        if let Some((key, value)) = word.split_once('=') {
            let entry = Entry { key: key.to_owned(), value: value.to_owned() };
            descriptor.entries.push(entry);
        } else if let Some((count, unit)) = word.split_once('/') {
            let requests_per_unit = count.parse().unwrap();
            let unit = RateLimitUnit::from_str_name(unit).unwrap().into();
            descriptor.limit = Some(RateLimitOverride { requests_per_unit, unit });
        } else {
            let (sign, value) = word.split_at(1);
            descriptor.is_negative_hits = sign == "-";
            descriptor.hits_addend = Some(UInt64Value { value: value.parse().unwrap() });
        }
    }
    descriptor
}

/// `OK | OK 10/SECOND name 9 1s | …`: of each status the code, the limit, what is left and the time
/// until it is reset.
pub(crate) fn answer_line(answer: &RateLimitResponse) -> String {
    let statuses = answer.statuses.iter().map(|status| format!(" | {}", status_line(status)));
    let code = Code::try_from(answer.overall_code).unwrap().as_str_name();
    format!("{code}{}", statuses.collect::<String>())
}

fn status_line(status: &DescriptorStatus) -> String {
    let code = Code::try_from(status.code).unwrap().as_str_name();
    let limit = status.current_limit.as_ref().map_or("-".to_owned(), |current_limit| {
        let unit = Unit::try_from(current_limit.unit).unwrap().as_str_name();
        let name = if current_limit.name.is_empty() {
            String::new()
        } else {
            format!(" {}", current_limit.name)
        };
        format!("{}/{unit}{name}", current_limit.requests_per_unit)
    });
    let left = match status.limit_remaining {
        u32::MAX => "all".to_owned(),
        left => left.to_string(),
    };
    let reset =
        status.duration_until_reset.as_ref().map_or("-".to_owned(), |duration_until_reset| {
            assert_eq!(duration_until_reset.nanos, 0, "whole seconds");
            format!("{}s", duration_until_reset.seconds)
        });
    format!("{code} {limit} {left} {reset}")
}
