//! A connection to a control plane, and the files that TLS needs for it.

use std::path::Path;

use tokio::time::timeout;
use tollgate_config::{FileProblem, XdsOptions, XdsTls, pem};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use crate::endpoint::{endpoint, with_sources, with_tls};

/// All files that cannot be used; blocks while it reads them.
pub fn file_problems(tls: &XdsTls) -> Vec<FileProblem> {
    let problems = [ca(tls).err(), cert(tls).err(), key(tls).err()];
    problems.into_iter().flatten().collect()
}

/// Connects. An error is as the log shows it.
pub(super) async fn connect(options: &XdsOptions) -> Result<Channel, String> {
    let mut endpoint = endpoint(options.uri()?)
        .http2_keep_alive_interval(options.ping_every)
        .keep_alive_timeout(options.ping_timeout)
        .keep_alive_while_idle(true);
    if let Some(tls) = options.tls.clone() {
        endpoint = with_tls(endpoint, move || tls_config(&tls)).await?;
    }
    match timeout(options.connect_timeout, endpoint.connect()).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error)) => Err(with_sources(&error)),
        Err(_) => Err(format!("no connection within {:?}", options.connect_timeout)),
    }
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
