//! A connection to a control plane.

use std::error::Error;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use super::files;
use tollgate_config::XdsOptions;

/// How often the kernel asks whether a silent peer is there, and how often in vain. No server sees
/// that, so none can mind; it finds hosts that are gone and networks that are cut, not a process
/// that hangs.
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Connects. What is wrong is told as the log says it.
pub(super) async fn connect(options: &XdsOptions) -> Result<Channel, String> {
    let endpoint = endpoint(options).await?;
    match timeout(options.connect_timeout, endpoint.connect()).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error)) => Err(whole(&error)),
        Err(_) => Err(format!("it was not connected to within {:?}", options.connect_timeout)),
    }
}

async fn endpoint(options: &XdsOptions) -> Result<Endpoint, String> {
    let endpoint = Endpoint::from(options.uri()?)
        .tcp_keepalive(Some(PROBE_EVERY))
        .tcp_keepalive_interval(Some(PROBE_EVERY))
        .tcp_keepalive_retries(Some(PROBES))
        .http2_keep_alive_interval(options.ping_every)
        .keep_alive_timeout(options.ping_timeout)
        .keep_alive_while_idle(true);
    let Some(tls) = options.tls.clone() else { return Ok(endpoint) };
    let config =
        spawn_blocking(move || files::config(&tls)).await.map_err(|error| error.to_string())?;
    endpoint.tls_config(config?).map_err(|error| whole(&error))
}

/// An error with what lies under it, which alone says what is wrong.
pub(super) fn whole(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut under = error.source();
    while let Some(error) = under {
        let more = error.to_string();
        // Some repeat what is under them.
        if !said.ends_with(&more) {
            said = format!("{said}: {more}");
        }
        under = error.source();
    }
    said
}
