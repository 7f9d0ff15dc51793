//! The contents of the TLS files: certificates and a key, as PEM.

use std::fmt;
use std::path::Path;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tollgate_config::{FileProblem, TlsConfig, pem};

/// The fields that name the files.
pub(super) const CERT: &str = "listen.tls.cert";
pub(super) const KEY: &str = "listen.tls.key";
pub(super) const CLIENT_CA: &str = "listen.tls.client_ca";

/// The bytes of the files. A reload compares them, so a change is found however the file was
/// replaced.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Omits the contents, because they include the private key.
impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contents").finish_non_exhaustive()
    }
}

impl Contents {
    pub(super) fn read(files: &TlsConfig) -> Result<Contents, FileProblem> {
        let client_ca = files.client_ca.as_deref();
        Ok(Contents {
            cert: read(CERT, &files.cert)?,
            key: read(KEY, &files.key)?,
            client_ca: client_ca.map(|client_ca| read(CLIENT_CA, client_ca)).transpose()?,
        })
    }

    /// One problem for each file that cannot be read.
    pub(super) fn read_problems(files: &TlsConfig) -> Vec<FileProblem> {
        let client_ca = files.client_ca.as_ref();
        let named = [(CERT, Some(&files.cert)), (KEY, Some(&files.key)), (CLIENT_CA, client_ca)];
        named.into_iter().filter_map(|(field, file)| read(field, file?).err()).collect()
    }

    /// The certificate of the daemon and its intermediates.
    pub(super) fn chain(
        &self,
        files: &TlsConfig,
    ) -> Result<Vec<CertificateDer<'static>>, FileProblem> {
        certificates(CERT, &files.cert, &self.cert)
    }

    pub(super) fn key(&self, files: &TlsConfig) -> Result<PrivateKeyDer<'static>, FileProblem> {
        pem::private_key(&files.key, &self.key)
            .map_err(|error| FileProblem::new(KEY, &files.key, error))
    }

    /// The authorities for client certificates, with the file that contains them.
    pub(super) fn client_ca<'a>(
        &self,
        files: &'a TlsConfig,
    ) -> Result<Option<(&'a Path, Vec<CertificateDer<'static>>)>, FileProblem> {
        let (Some(file), Some(contents)) = (&files.client_ca, &self.client_ca) else {
            return Ok(None);
        };
        Ok(Some((file, certificates(CLIENT_CA, file, contents)?)))
    }
}

fn read(field: &str, path: &Path) -> Result<Vec<u8>, FileProblem> {
    pem::read(path).map_err(|error| FileProblem::new(field, path, error))
}

fn certificates(
    field: &str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, FileProblem> {
    pem::certificates(pem).map_err(|error| FileProblem::new(field, path, error))
}
