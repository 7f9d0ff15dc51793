//! A client of the rate limit service, with requests and responses as lines.

use std::net::SocketAddr;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use tonic::transport::{Channel, Endpoint};

pub(crate) type Client = RateLimitServiceClient<Channel>;

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

pub(crate) async fn connect(address: SocketAddr) -> Client {
    RateLimitServiceClient::new(channel(address).await)
}

/// Sends a request and returns the response, both as a line.
pub(crate) async fn call(client: &mut Client, request: &str) -> String {
    match client.should_rate_limit(parse_request(request)).await {
        Ok(response) => response_line(response.get_ref()),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}

/// Parses `domain [+hits] | key=value key=value [+hits] | …`.
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
        match word.split_once('=') {
            Some((key, value)) => {
                let entry = Entry { key: key.to_owned(), value: value.to_owned() };
                descriptor.entries.push(entry);
            }
            None => {
                let value = word.strip_prefix('+').unwrap().parse().unwrap();
                descriptor.hits_addend = Some(UInt64Value { value });
            }
        }
    }
    descriptor
}

/// `OK | OK 10/SECOND 9 | …`, without the time of the reset, which varies.
pub(crate) fn response_line(response: &RateLimitResponse) -> String {
    let statuses = response.statuses.iter().map(|descriptor| format!(" | {}", status(descriptor)));
    let code = Code::try_from(response.overall_code).unwrap().as_str_name();
    format!("{code}{}", statuses.collect::<String>())
}

fn status(status: &DescriptorStatus) -> String {
    let code = Code::try_from(status.code).unwrap().as_str_name();
    match &status.current_limit {
        None => code.to_owned(),
        Some(limit) => {
            let unit = Unit::try_from(limit.unit).unwrap().as_str_name();
            let (requests, remaining) = (limit.requests_per_unit, status.limit_remaining);
            format!("{code} {requests}/{unit} {remaining}")
        }
    }
}
