//! `listen`.

use std::path::PathBuf;

use crate::fields::{Invalid, SectionReader};
use crate::{Listen, TlsConfig};

pub(super) fn read(fields: &SectionReader<'_>) -> Result<Listen, Invalid> {
    let tls = tls(&fields.section("tls")?);
    Ok(Listen {
        http: fields.get("http")?,
        grpc: fields.get("grpc")?,
        resp: fields.get("resp")?,
        metrics: fields.get("metrics")?,
        tls: tls?,
    })
}

fn tls(fields: &SectionReader<'_>) -> Result<Option<TlsConfig>, Invalid> {
    let client_ca: Option<PathBuf> = fields.get("client_ca")?;
    match (fields.get("cert")?, fields.get("key")?) {
        (Some(cert), Some(key)) => Ok(Some(TlsConfig { client_ca, ..TlsConfig::new(cert, key) })),
        (Some(PathBuf { .. }), None) => Err(fields.report(
            "cert",
            "requires \
                                                                   listen.tls.key; add it",
        )),
        (None, Some(PathBuf { .. })) => Err(fields.report(
            "key",
            "requires \
                                                                  listen.tls.cert; add it",
        )),
        (None, None) if client_ca.is_some() => {
            let message = "client certificates require TLS; add listen.tls.cert and listen.tls.key";
            Err(fields.report("client_ca", message))
        }
        (None, None) => Ok(None),
    }
}
