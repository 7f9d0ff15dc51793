//! A client of the rate limit service, whose requests and responses are text.

use std::net::SocketAddr;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::UInt64Value;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use crate::support::daemon::Daemon;
use crate::support::eventually;

pub(crate) type Client = RateLimitServiceClient<Channel>;

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

pub(crate) async fn connect(daemon: &Daemon) -> Client {
    RateLimitServiceClient::new(channel(daemon.grpc).await)
}

/// Sends a request. Returns the response, or an error such as `InvalidArgument: …`, as text.
pub(crate) async fn call(client: &mut Client, request: &str) -> String {
    format_result(client.should_rate_limit(parse_request(request)).await)
}

pub(crate) fn format_result(result: Result<Response<RateLimitResponse>, Status>) -> String {
    match result {
        Ok(response) => format_response(response.get_ref()),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}

/// Sends a request until the response begins as expected.
pub(crate) async fn wait_for(client: &mut Client, request: &str, expected: &str) {
    eventually(expected, async || call(client, request).await.starts_with(expected)).await;
}

/// Sends a message.
pub(crate) async fn send(
    client: &mut Client,
    request: RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    Ok(client.should_rate_limit(request).await?.into_inner())
}

/// Parses `domain [+hits] | key=value key=value [+hits|-hits] [limit 5/MINUTE] | …`.
pub(crate) fn parse_request(line: &str) -> RateLimitRequest {
    let mut parts = line.split('|').map(str::trim);
    let head = parts.next().unwrap();
    let (domain, hits) = head.split_once(" +").unwrap_or((head, "0"));
    RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: parts.map(parse_descriptor).collect(),
        hits_addend: hits.parse().unwrap(),
    }
}

fn parse_descriptor(text: &str) -> RateLimitDescriptor {
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

/// Formats `OK | OK 10/SECOND name 9 1s | …`: for each status the code, the limit, what remains and
/// the time until the reset.
fn format_response(response: &RateLimitResponse) -> String {
    let statuses = response.statuses.iter().map(|status| format!(" | {}", format_status(status)));
    let code = Code::try_from(response.overall_code).unwrap().as_str_name();
    format!("{code}{}", statuses.collect::<String>())
}

fn format_status(status: &DescriptorStatus) -> String {
    let code = Code::try_from(status.code).unwrap().as_str_name();
    let limit = status.current_limit.as_ref().map_or("-".to_owned(), |limit| {
        let unit = Unit::try_from(limit.unit).unwrap().as_str_name();
        let separator = if limit.name.is_empty() { "" } else { " " };
        format!("{}/{unit}{separator}{}", limit.requests_per_unit, limit.name)
    });
    let left = match status.limit_remaining {
        u32::MAX => "all".to_owned(),
        left => left.to_string(),
    };
    let reset = status.duration_until_reset.as_ref().map_or("-".to_owned(), |duration| {
        assert_eq!(duration.nanos, 0, "whole seconds");
        format!("{}s", duration.seconds)
    });
    format!("{code} {limit} {left} {reset}")
}
