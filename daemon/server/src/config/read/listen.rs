//! `listen`.

use std::path::PathBuf;

use super::super::fields::{Broken, Fields};
use super::super::{Listen, TlsConfig};

pub(super) fn read(fields: &Fields<'_>) -> Result<Listen, Broken> {
    let tls = tls(&fields.section("tls")?);
    Ok(Listen {
        http: fields.get("http")?,
        grpc: fields.get("grpc")?,
        resp: fields.get("resp")?,
        metrics: fields.get("metrics")?,
        tls: tls?,
    })
}

fn tls(fields: &Fields<'_>) -> Result<Option<TlsConfig>, Broken> {
    let client_ca: Option<PathBuf> = fields.get("client_ca")?;
    match (fields.get("cert")?, fields.get("key")?) {
        (Some(cert), Some(key)) => Ok(Some(TlsConfig { client_ca, ..TlsConfig::new(cert, key) })),
        (Some(PathBuf { .. }), None) => Err(fields.complain("cert", "write listen.tls.key too")),
        (None, Some(PathBuf { .. })) => Err(fields.complain("key", "write listen.tls.cert too")),
        (None, None) if client_ca.is_some() => {
            let message = "clients show a certificate with TLS only: write listen.tls.cert and \
                           listen.tls.key too";
            Err(fields.complain("client_ca", message))
        }
        (None, None) => Ok(None),
    }
}
