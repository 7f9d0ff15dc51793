//! A connection to a control plane, and the files that TLS needs for it.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tollgate_config::{FileProblem, XdsOptions, XdsTls, pem};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// TCP keepalive finds unreachable hosts, not processes that hang; servers cannot object to it.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// All files that cannot be used; blocks while it reads them.
pub fn file_problems(tls: &XdsTls) -> Vec<FileProblem> {
    let problems = [ca(tls).err(), cert(tls).err(), key(tls).err()];
    problems.into_iter().flatten().collect()
}

/// Connects. An error is as the log shows it.
pub(super) async fn connect(options: &XdsOptions) -> Result<Channel, String> {
    let endpoint = endpoint(options).await?;
    match timeout(options.connect_timeout, endpoint.connect()).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error)) => Err(with_sources(&error)),
        Err(_) => Err(format!("no connection within {:?}", options.connect_timeout)),
    }
}

async fn endpoint(options: &XdsOptions) -> Result<Endpoint, String> {
    let endpoint = Endpoint::from(options.uri()?)
        .tcp_keepalive(Some(PROBE_INTERVAL))
        .tcp_keepalive_interval(Some(PROBE_INTERVAL))
        .tcp_keepalive_retries(Some(PROBES))
        .http2_keep_alive_interval(options.ping_every)
        .keep_alive_timeout(options.ping_timeout)
        .keep_alive_while_idle(true);
    let Some(tls) = options.tls.clone() else { return Ok(endpoint) };
    let config =
        spawn_blocking(move || tls_config(&tls)).await.map_err(|error| error.to_string())?;
    endpoint.tls_config(config?).map_err(|error| with_sources(&error))
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

/// The TLS settings; blocks while it reads the files.
fn tls_config(tls: &XdsTls) -> Result<ClientTlsConfig, String> {
    let text = |problem: FileProblem| problem.to_string();
    let config = ClientTlsConfig::new();
    let mut config = match ca(tls).map_err(text)? {
        Some(pem) => config.ca_certificate(Certificate::from_pem(pem)),
        None => config.with_native_roots(),
    };
    if let (Some(cert), Some(key)) = (cert(tls).map_err(text)?, key(tls).map_err(text)?) {
        config = config.identity(Identity::from_pem(cert, key));
    }
    Ok(match &tls.san {
        Some(name) => config.domain_name(name),
        None => config,
    })
}

fn ca(tls: &XdsTls) -> Result<Option<Vec<u8>>, FileProblem> {
    read("envoy.xds.ca", tls.ca.as_deref(), |_, pem| pem::certificates(pem).map(drop))
}

fn cert(tls: &XdsTls) -> Result<Option<Vec<u8>>, FileProblem> {
    read("envoy.xds.cert", tls.cert.as_deref(), |_, pem| pem::certificates(pem).map(drop))
}

fn key(tls: &XdsTls) -> Result<Option<Vec<u8>>, FileProblem> {
    read("envoy.xds.key", tls.key.as_deref(), |file, pem| pem::private_key(file, pem).map(drop))
}

/// Reads and validates a file, if one is configured.
fn read(
    field: &str,
    file: Option<&Path>,
    validate: impl Fn(&Path, &[u8]) -> Result<(), String>,
) -> Result<Option<Vec<u8>>, FileProblem> {
    let Some(file) = file else { return Ok(None) };
    let content = pem::read(file).and_then(|pem| validate(file, &pem).map(|()| pem));
    content.map(Some).map_err(|reason| FileProblem::new(field, file, reason))
}
