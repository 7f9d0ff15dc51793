//! A client of the rate limit service.

use std::net::SocketAddr;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use super::text::{format_response, parse_request};
use crate::support::daemon::Daemon;

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

/// Sends a message.
pub(crate) async fn send(
    client: &mut Client,
    request: RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    Ok(client.should_rate_limit(request).await?.into_inner())
}
