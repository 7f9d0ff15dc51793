//! A client of the rate limit service.

use std::net::SocketAddr;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use super::lines::{answer_line, request_of};
use crate::daemon::Daemon;

pub(crate) type Client = RateLimitServiceClient<Channel>;

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

pub(crate) async fn connect(daemon: &Daemon) -> Client {
    RateLimitServiceClient::new(channel(daemon.grpc).await)
}

/// Asks, and writes the answer as a line, or the error: `InvalidArgument: …`.
pub(crate) async fn ask(client: &mut Client, request: &str) -> String {
    answer_of(client.should_rate_limit(request_of(request)).await)
}

pub(crate) fn answer_of(answer: Result<Response<RateLimitResponse>, Status>) -> String {
    match answer {
        Ok(answer) => answer_line(answer.get_ref()),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}

pub(crate) async fn call(
    client: &mut Client,
    request: RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    Ok(client.should_rate_limit(request).await?.into_inner())
}
