//! What is in the files: certificates and a key, as PEM.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;
use crate::config::TlsConfig;

/// The most bytes that are read of a file.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// What is in the files, as it is there. It is compared to see whether they have changed: however
/// a file was replaced, what counts is what is in it.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Without the key.
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
            client_ca: client_ca.map(|it| read("client_ca", it)).transpose()?,
        })
    }

    /// Every file that cannot be read.
    pub(super) fn unread(files: &TlsConfig) -> Vec<TlsError> {
        let named = [("cert", Some(&files.cert)), ("key", Some(&files.key))];
        let named = named.into_iter().chain([("client_ca", files.client_ca.as_ref())]);
        named.filter_map(|(field, file)| read(field, file?).err()).collect()
    }

    /// The certificate to show, and those that lead to it.
    pub(super) fn chain(
        &self,
        files: &TlsConfig,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates("cert", &files.cert, &self.cert)
    }

    pub(super) fn key(&self, files: &TlsConfig) -> Result<PrivateKeyDer<'static>, TlsError> {
        if is_encrypted(&self.key) {
            let file = files.key.display();
            return Err(TlsError::key(
                files,
                format!(
                    "it is encrypted, and nobody is there to type its passphrase; write it without \
                     one: openssl pkey -in {file} -out NEW"
                ),
            ));
        }
        PrivateKeyDer::from_pem_slice(&self.key).map_err(|it| {
            let why = format!("there is no private key in it ({it}); write one as PEM");
            TlsError::key(files, why)
        })
    }

    /// The certificates that a client's must lead to, with the file that they are in.
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
    let unreadable =
        |it: std::io::Error| TlsError::new(field, path, format!("it cannot be read: {it}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut contents = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut contents).map_err(unreadable)?;
    if u64::try_from(contents.len()).is_ok_and(|it| it <= MOST_BYTES) {
        return Ok(contents);
    }
    Err(TlsError::new(
        field,
        path,
        format!("it has more than {MOST_BYTES} bytes; is it the right one?"),
    ))
}

fn certificates(
    field: &'static str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|it| TlsError::new(field, path, format!("it is no PEM: {it}")))?;
    if found.is_empty() {
        let why =
            "there is no certificate in it; write one as PEM, from -----BEGIN CERTIFICATE-----";
        return Err(TlsError::new(field, path, why));
    }
    Ok(found)
}

/// Both ways in which a PEM says so.
fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}
