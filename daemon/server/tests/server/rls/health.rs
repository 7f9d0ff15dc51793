//! `grpc.health.v1`: known under three names, and unwell from the first moment of the drain.

use tollgate_server::Stop;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::client::channel;
use crate::access::token;
use crate::daemon::Daemon;

const NAMES: [&str; 3] = ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"];

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn check(client: &mut HealthClient<Channel>, service: &str) -> Result<ServingStatus, Status> {
    client.check(of(service)).await.map(|x| x.get_ref().status())
}

fn told(answer: Option<HealthCheckResponse>) -> Option<ServingStatus> {
    answer.map(|answer| answer.status())
}

#[tokio::test]
async fn it_is_told_by_name_also_without_a_token() {
    let daemon = Daemon::start_changed(|x| x.tokens = vec![token("it", "check", "'*'")]).await;
    let mut client = HealthClient::new(channel(daemon.grpc).await);
    for name in NAMES {
        assert_eq!(check(&mut client, name).await.unwrap(), ServingStatus::Serving, "{name}");
    }
    assert_eq!(check(&mut client, "another").await.unwrap_err().code(), Code::NotFound);
    let mut watch = client.watch(of("another")).await.unwrap().into_inner();
    assert_eq!(told(watch.message().await.unwrap()), Some(ServingStatus::ServiceUnknown));
}

#[tokio::test]
async fn a_drain_is_told_at_once_and_ends_what_is_watched() {
    let mut daemon = Daemon::start_changed(|x| {
        x.drain.delay = std::time::Duration::from_millis(300);
    })
    .await;
    let mut client = HealthClient::new(channel(daemon.grpc).await);
    let mut watches = Vec::new();
    for name in NAMES {
        let mut watch = client.watch(of(name)).await.unwrap().into_inner();
        assert_eq!(told(watch.message().await.unwrap()), Some(ServingStatus::Serving));
        watches.push(watch);
    }
    daemon.stop_as(Stop::AfterDelay);
    for watch in &mut watches {
        assert_eq!(told(watch.message().await.unwrap()), Some(ServingStatus::NotServing));
    }
    // It still answers, for whoever has not heard of it.
    let mut other = HealthClient::new(channel(daemon.grpc).await);
    assert_eq!(check(&mut other, "ratelimit").await.unwrap(), ServingStatus::NotServing);
    for watch in &mut watches {
        assert_eq!(watch.message().await.unwrap_err().code(), Code::Unavailable);
    }
    daemon.ended().await;
}
