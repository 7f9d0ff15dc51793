//! Connections to other gRPC services.

use std::error::Error;
use std::time::Duration;

use hyper::Uri;
use tokio::task::spawn_blocking;
use tonic::transport::{ClientTlsConfig, Endpoint};

/// TCP keepalive finds unreachable hosts, not processes that hang; servers cannot object to it.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// A service without TLS.
pub(crate) fn endpoint(uri: Uri) -> Endpoint {
    Endpoint::from(uri)
        .tcp_keepalive(Some(PROBE_INTERVAL))
        .tcp_keepalive_interval(Some(PROBE_INTERVAL))
        .tcp_keepalive_retries(Some(PROBES))
}

/// Adds TLS. The files of the configuration and the system's roots are read on a thread that may block.
///
/// # Errors
/// They cannot be read or used; the error is as the log shows it.
pub(crate) async fn with_tls(
    endpoint: Endpoint,
    config: impl FnOnce() -> Result<ClientTlsConfig, String> + Send + 'static,
) -> Result<Endpoint, String> {
    let configure = move || endpoint.tls_config(config()?).map_err(|error| with_sources(&error));
    spawn_blocking(configure).await.map_err(|error| error.to_string())?
}

/// An error with its sources, which often contain the actual reason.
pub(crate) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        // Some errors repeat their source.
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}
