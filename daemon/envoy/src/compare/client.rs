//! The client of the other service.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap};
use tokio::time::timeout;
use tollgate_config::CompareOptions;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, ClientTlsConfig};

use crate::endpoint::{endpoint, with_tls};

type Client = RateLimitServiceClient<Channel>;

/// The client for the current options. It connects when it is first used, and again after a failure.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Option<(CompareOptions, Client)>>);

impl Clients {
    /// Calls the service. A failure of the service is returned as it is.
    ///
    /// # Errors
    /// The service fails, is unavailable, or does not answer in time.
    pub(super) async fn call(
        &self,
        options: &CompareOptions,
        headers: &HeaderMap,
        request: &RateLimitRequest,
    ) -> Result<RateLimitResponse, Status> {
        let mut call = tonic::Request::new(request.clone());
        *call.metadata_mut() = forwarded(headers);
        let answer = async { self.client(options).await?.should_rate_limit(call).await };
        let answer = timeout(options.timeout, answer).await;
        let answer = answer.unwrap_or_else(|_| {
            let message = format!("{} did not answer within {:?}", options.uri, options.timeout);
            Err(Status::deadline_exceeded(message))
        });
        answer.map(tonic::Response::into_inner).map_err(unavailable_unless_sent)
    }

    async fn client(&self, options: &CompareOptions) -> Result<Client, Status> {
        if let Some((known, client)) = &*self.lock()
            && known == options
        {
            return Ok(client.clone());
        }
        let client = Client::new(channel(options).await.map_err(Status::unavailable)?);
        *self.lock() = Some((options.clone(), client.clone()));
        Ok(client)
    }

    fn lock(&self) -> MutexGuard<'_, Option<(CompareOptions, Client)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `UNAVAILABLE` for a status that the service has not sent, such as `CANCELLED` if it closed the
/// connection during the call: its client has not cancelled it.
fn unavailable_unless_sent(status: Status) -> Status {
    // A status from the wire has no source.
    if status.source().is_some() { Status::unavailable(status.message()) } else { status }
}

async fn channel(options: &CompareOptions) -> Result<Channel, String> {
    let mut endpoint = endpoint(options.uri.clone()).connect_timeout(options.timeout);
    if options.is_tls() {
        endpoint = with_tls(endpoint, || Ok(ClientTlsConfig::new().with_native_roots())).await?;
    }
    Ok(endpoint.connect_lazy())
}

/// The metadata of a request for the service: without the token, which is Tollgate's, and without what
/// describes the connection of the client.
fn forwarded(headers: &HeaderMap) -> MetadataMap {
    let mut forwarded = headers.clone();
    forwarded.remove(AUTHORIZATION);
    // The message is encoded again.
    forwarded.remove(CONTENT_LENGTH);
    let own: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with("grpc-")).collect();
    for name in own {
        forwarded.remove(name);
    }
    MetadataMap::from_headers(forwarded)
}
