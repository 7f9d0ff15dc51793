//! `grpc.health.v1`: four service names; not serving from the start of the drain.

use tollgate_daemon::Stop;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::client::channel;
use crate::http::access::token;
use crate::support::daemon::Daemon;

const NAMES: [&str; 4] = [
    "",
    "ratelimit",
    "envoy.service.ratelimit.v3.RateLimitService",
    "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
];

fn request(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn check(client: &mut HealthClient<Channel>, service: &str) -> Result<ServingStatus, Status> {
    client.check(request(service)).await.map(|response| response.get_ref().status())
}

/// The next status of a watch.
async fn next(watch: &mut Streaming<HealthCheckResponse>) -> ServingStatus {
    watch.message().await.unwrap().unwrap().status()
}

#[tokio::test]
async fn health_is_reported_by_name_without_a_token() {
    let daemon = Daemon::start_with_options(|config| {
        config.tokens = vec![token("it", "check", "'*'")];
    })
    .await;
    let mut client = HealthClient::new(channel(daemon.grpc).await);
    for name in NAMES {
        assert_eq!(check(&mut client, name).await.unwrap(), ServingStatus::Serving, "{name}");
    }
    assert_eq!(check(&mut client, "another").await.unwrap_err().code(), Code::NotFound);
    let mut watch = client.watch(request("another")).await.unwrap().into_inner();
    assert_eq!(next(&mut watch).await, ServingStatus::ServiceUnknown);
}

#[tokio::test]
async fn a_drain_is_reported_to_watchers_and_ends_their_streams() {
    let mut daemon = Daemon::start_with_options(|config| {
        config.drain.delay = std::time::Duration::from_millis(300);
    })
    .await;
    let mut client = HealthClient::new(channel(daemon.grpc).await);
    let mut watches = Vec::new();
    for name in NAMES {
        let mut watch = client.watch(request(name)).await.unwrap().into_inner();
        assert_eq!(next(&mut watch).await, ServingStatus::Serving);
        watches.push(watch);
    }
    daemon.stop_with(Stop::AfterDelay);
    for watch in &mut watches {
        assert_eq!(next(watch).await, ServingStatus::NotServing);
    }
    // New connections are still answered.
    let mut other = HealthClient::new(channel(daemon.grpc).await);
    assert_eq!(check(&mut other, "ratelimit").await.unwrap(), ServingStatus::NotServing);
    for watch in &mut watches {
        assert_eq!(watch.message().await.unwrap_err().code(), Code::Unavailable);
    }
    daemon.join().await;
}
