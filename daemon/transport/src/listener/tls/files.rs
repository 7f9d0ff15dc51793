//! The contents of the TLS files: certificates and a key, as PEM.

use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;
use tollgate_config::TlsConfig;
use tollgate_config::pem;

/// The bytes of the files. A reload compares them, so a change is found however the file was
/// replaced.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Omits the contents, because they include the private key.
impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents").finish_non_exhaustive()
    }
}

impl Contents {
    pub(super) fn read(files: &TlsConfig) -> Result<Contents, TlsError> {
        let client_ca = files.client_ca.as_deref();
        Ok(Contents {
            cert: read("cert", &files.cert)?,
            key: read("key", &files.key)?,
            client_ca: client_ca.map(|client_ca| read("client_ca", client_ca)).transpose()?,
        })
    }

    /// One error for each file that cannot be read.
    pub(super) fn read_errors(files: &TlsConfig) -> Vec<TlsError> {
        let named = [("cert", Some(&files.cert)), ("key", Some(&files.key))];
        let named = named.into_iter().chain([("client_ca", files.client_ca.as_ref())]);
        named.filter_map(|(field, file)| read(field, file?).err()).collect()
    }

    /// The certificate of the daemon and its intermediates.
    pub(super) fn chain(
        &self,
        files: &TlsConfig,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates("cert", &files.cert, &self.cert)
    }

    pub(super) fn key(&self, files: &TlsConfig) -> Result<PrivateKeyDer<'static>, TlsError> {
        pem::private_key(&files.key, &self.key).map_err(|error| TlsError::key(files, error))
    }

    /// The authorities for client certificates, with the file that contains them.
    pub(super) fn client_ca<'a>(
        &self,
        files: &'a TlsConfig,
    ) -> Result<Option<(&'a Path, Vec<CertificateDer<'static>>)>, TlsError> {
        let (Some(file), Some(contents)) = (&files.client_ca, &self.client_ca) else {
            return Ok(None);
        };
        Ok(Some((file, certificates("client_ca", file, contents)?)))
    }
}

fn read(field: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    pem::read(path).map_err(|error| TlsError::new(field, path, error))
}

fn certificates(
    field: &'static str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    pem::certificates(pem).map_err(|error| TlsError::new(field, path, error))
}
