//! The files that TLS with a control plane needs.

use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use tollgate_config::XdsTls;
use tollgate_config::pem;

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Its field of `envoy.xds`.
    pub field: &'static str,
    /// The file.
    pub file: PathBuf,
    /// The reason, with the remedy.
    pub reason: String,
}

/// All files that cannot be used; blocks while it reads them.
pub fn file_errors(tls: &XdsTls) -> Vec<FileError> {
    let found = [ca(tls).err(), cert(tls).err(), key(tls).err()];
    found.into_iter().flatten().collect()
}

/// How TLS is spoken; blocks while it reads the files.
pub(super) fn config(tls: &XdsTls) -> Result<ClientTlsConfig, String> {
    let text =
        |error: FileError| format!("{}: {}: {}", error.field, error.file.display(), error.reason);
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

fn ca(tls: &XdsTls) -> Result<Option<Vec<u8>>, FileError> {
    certificates("ca", tls.ca.as_deref())
}

fn cert(tls: &XdsTls) -> Result<Option<Vec<u8>>, FileError> {
    certificates("cert", tls.cert.as_deref())
}

fn certificates(field: &'static str, file: Option<&Path>) -> Result<Option<Vec<u8>>, FileError> {
    let is_one = |pem: &[u8]| pem::certificates(pem).map(drop);
    file.map(|file| read(field, file, is_one)).transpose()
}

fn key(tls: &XdsTls) -> Result<Option<Vec<u8>>, FileError> {
    let Some(file) = &tls.key else { return Ok(None) };
    let is_one = |pem: &[u8]| pem::private_key(file, pem).map(drop);
    read("key", file, is_one).map(Some)
}

/// What is in a file, if it is what it should be.
fn read(
    field: &'static str,
    path: &Path,
    is_one: impl Fn(&[u8]) -> Result<(), String>,
) -> Result<Vec<u8>, FileError> {
    let read = pem::read(path).and_then(|pem| is_one(&pem).map(|()| pem));
    read.map_err(|reason| FileError { field, file: path.to_owned(), reason })
}
