//! Envoy's Rate Limit Quota Service, `envoy.service.rate_limit_quota.v3`: clients report their
//! requests by bucket, and get token buckets that together never exceed the limit.
//!
//! `division.rs` divides a limit, `bucket.rs` has the state of one bucket, and `round.rs` acquires
//! leases and tokens from the store. `session.rs` does so for the buckets of one stream, and
//! `assignment.rs` encodes the answers.

mod assignment;
mod bucket;
mod division;
mod round;
mod session;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use envoy_types::pb::envoy::service::rate_limit_quota::v3::rate_limit_quota_service_server::RateLimitQuotaService;
use envoy_types::pb::envoy::service::rate_limit_quota::v3::{
    RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tollgate_engine::{Counter, LogThrottle};
use tonic::{Request, Response, Status, Streaming};

use self::division::LEASE;
use self::session::Session;
use crate::connection::Service;

/// The longest time between two reads of the configuration.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// The counters of the quota service.
#[derive(Debug, Default)]
pub struct QuotaStats {
    /// Open streams.
    pub streams: AtomicU64,
    /// Buckets of open streams.
    pub buckets: AtomicU64,
    /// Messages with reports.
    pub reports: Counter,
    /// Messages with assignments.
    pub responses: Counter,
    /// Assignments that were not made because of the store.
    pub store_errors: Counter,
    /// Assignments that were discarded because the store took too long.
    pub late: Counter,
    /// Clients that stopped reporting, and may apply an assignment late.
    pub silent: Counter,
    /// Lookups of buckets whose limit cannot be divided, or that have none.
    pub refused: Counter,
    refusals: LogThrottle,
}

/// The service of one connection.
#[derive(Debug)]
pub(crate) struct QuotaService {
    pub(crate) service: Service,
    pub(crate) closing: watch::Receiver<bool>,
    /// Kept while a stream is open.
    pub(crate) open: Arc<()>,
}

#[tonic::async_trait]
impl RateLimitQuotaService for QuotaService {
    type StreamRateLimitQuotasStream = ReceiverStream<Result<RateLimitQuotaResponse, Status>>;

    async fn stream_rate_limit_quotas(
        &self,
        request: Request<Streaming<RateLimitQuotaUsageReports>>,
    ) -> Result<Response<Self::StreamRateLimitQuotasStream>, Status> {
        let (metadata, _, reports) = request.into_parts();
        let Service { engine, state, .. } = &self.service;
        // A memory store has forgotten what was assigned before it was started.
        let ready = match engine.limiter().as_memory() {
            Some(_) => engine.started().saturating_add(LEASE),
            None => engine.started(),
        };
        let (clock, headers) = (engine.clock().clone(), metadata.into_headers());
        let mut session = Session::new(self.service.clone(), headers, clock, ready);
        // Without buckets this only authenticates the client.
        session.respond().await?;
        let (sender, responses) = mpsc::channel(1);
        let (state, closing) = (Arc::clone(state), self.closing.clone());
        let open = Arc::clone(&self.open);
        tokio::spawn(async move {
            let _open = open;
            state.quota.streams.fetch_add(1, Ordering::Relaxed);
            if let Err(status) = serve(session, reports, closing, &sender).await {
                // The client may have left.
                let _ = sender.send(Err(status)).await;
            }
            state.quota.streams.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(Response::new(ReceiverStream::new(responses)))
    }
}

/// Serves a stream until the client ends it, or the connection closes.
async fn serve(
    mut session: Session,
    mut reports: Streaming<RateLimitQuotaUsageReports>,
    mut closing: watch::Receiver<bool>,
    sender: &mpsc::Sender<Result<RateLimitQuotaResponse, Status>>,
) -> Result<(), Status> {
    loop {
        let wait = session.next_due().map_or(MAX_WAIT, |due| Duration::from(due).min(MAX_WAIT));
        tokio::select! {
            message = reports.message() => match message? {
                Some(message) => session.receive(message),
                None => return Ok(()),
            },
            () = tokio::time::sleep(wait) => {}
            () = sender.closed() => return Ok(()),
            _ = closing.wait_for(|is_closing| *is_closing) => {
                return Err(Status::unavailable("the connection is closing; open another stream"));
            }
        }
        if session.next_due().is_some_and(|due| Duration::from(due).is_zero()) {
            // While the client has not received the last response, another one would be late.
            let Ok(permit) = sender.try_reserve() else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            if let Some(response) = session.respond().await? {
                permit.send(Ok(response));
            }
        }
    }
}
