//! `grpc.health.v1`: whether the daemon wants requests.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::SERVICE_NAME;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use crate::daemon::Daemon;

/// The service's name.
pub(super) const NAME: &str = "grpc.health.v1.Health";

/// The names under which the daemon is asked for: as a whole, as the reference calls itself, and by
/// its service.
const KNOWN: [&str; 3] = ["", "ratelimit", SERVICE_NAME];

/// The service, for one call.
#[derive(Debug)]
pub(super) struct Health {
    healthy: watch::Receiver<bool>,
    /// Whether the connection is to end.
    ending: watch::Receiver<bool>,
}

impl Health {
    pub(super) fn new(daemon: &Daemon, ending: watch::Receiver<bool>) -> Self {
        Health { healthy: daemon.healthy(), ending }
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !KNOWN.contains(&&*service) {
            let known = "ask for \"\", \"ratelimit\" or the rate limit service's full name";
            return Err(Status::not_found(format!("that service is not served; {known}")));
        }
        Ok(Response::new(health(serving(*self.healthy.borrow()))))
    }

    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let is_known = KNOWN.contains(&&*request.into_inner().service);
        let (told, stream) = mpsc::channel(1);
        tokio::spawn(tell(is_known, self.healthy.clone(), self.ending.clone(), told));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Tells how it is, and again when that changes, until the peer leaves or must.
async fn tell(
    is_known: bool,
    mut healthy: watch::Receiver<bool>,
    mut ending: watch::Receiver<bool>,
    told: mpsc::Sender<Result<HealthCheckResponse, Status>>,
) {
    loop {
        let is_healthy = *healthy.borrow_and_update();
        let status = if is_known { serving(is_healthy) } else { ServingStatus::ServiceUnknown };
        if told.send(Ok(health(status))).await.is_err() {
            return;
        }
        let has_news = tokio::select! {
            changed = healthy.changed() => changed.is_ok(),
            () = told.closed() => false,
            _ = ending.wait_for(|it| *it) => false,
        };
        if !has_news {
            let again = "the connection is at its end; watch on another one";
            // Whoever has left needs no reason.
            let _ = told.send(Err(Status::unavailable(again))).await;
            return;
        }
    }
}

fn serving(is_healthy: bool) -> ServingStatus {
    if is_healthy { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn health(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
