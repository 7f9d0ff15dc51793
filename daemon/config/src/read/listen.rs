//! `listen`.

use std::path::PathBuf;

use crate::fields::{Broken, Fields};
use crate::{Listen, TlsConfig};

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
        (Some(PathBuf { .. }), None) => Err(fields.report("cert", "write listen.tls.key too")),
        (None, Some(PathBuf { .. })) => Err(fields.report("key", "write listen.tls.cert too")),
        (None, None) if client_ca.is_some() => {
            let message = "clients show a certificate with TLS only: write listen.tls.cert and \
                           listen.tls.key too";
            Err(fields.report("client_ca", message))
        }
        (None, None) => Ok(None),
    }
}
