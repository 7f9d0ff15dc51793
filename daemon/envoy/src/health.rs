//! `grpc.health.v1`: whether the daemon accepts requests.

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server::SERVICE_NAME as QUOTA_NAME;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::SERVICE_NAME;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use tollgate_transport::Lifecycle;

/// The service's name.
pub(super) const NAME: &str = "grpc.health.v1.Health";

/// The services that a client can check: the daemon as a whole, the name of envoyproxy/ratelimit,
/// the rate limit service and the quota service.
const KNOWN: [&str; 4] = ["", "ratelimit", SERVICE_NAME, QUOTA_NAME];

/// The service, for one call.
#[derive(Debug)]
pub(super) struct Health {
    healthy: watch::Receiver<bool>,
    /// Whether the connection is closing.
    closing: watch::Receiver<bool>,
}

impl Health {
    pub(super) fn new(lifecycle: &Lifecycle, closing: watch::Receiver<bool>) -> Self {
        Health { healthy: lifecycle.healthy(), closing }
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
            let known = "expected \"\", \"ratelimit\" or the full name of a service";
            return Err(Status::not_found(format!("unknown service; {known}")));
        }
        Ok(Response::new(health(serving(*self.healthy.borrow()))))
    }

    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let is_known = KNOWN.contains(&&*request.into_inner().service);
        let (sender, stream) = mpsc::channel(1);
        tokio::spawn(watch_health(is_known, self.healthy.clone(), self.closing.clone(), sender));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Sends the status, and again when it changes, until the client leaves or the connection closes.
async fn watch_health(
    is_known: bool,
    mut healthy: watch::Receiver<bool>,
    mut closing: watch::Receiver<bool>,
    sender: mpsc::Sender<Result<HealthCheckResponse, Status>>,
) {
    loop {
        let is_healthy = *healthy.borrow_and_update();
        let status = if is_known { serving(is_healthy) } else { ServingStatus::ServiceUnknown };
        if sender.send(Ok(health(status))).await.is_err() {
            return;
        }
        let has_changed = tokio::select! {
            changed = healthy.changed() => changed.is_ok(),
            () = sender.closed() => false,
            _ = closing.wait_for(|is_closing| *is_closing) => false,
        };
        if !has_changed {
            let detail = "the connection is closing; watch on another one";
            // The client may have left.
            let _ = sender.send(Err(Status::unavailable(detail))).await;
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
