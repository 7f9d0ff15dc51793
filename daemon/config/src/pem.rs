//! Certificates and private keys in PEM files.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::files;

/// The maximum size of a file in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Reads a file.
///
/// # Errors
/// The file cannot be read or is too long. The message does not contain the name of the file.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, &mut { MAX_BYTES })?.ok_or_else(|| {
        format!("longer than the maximum of {MAX_BYTES} bytes; check that it is the right file")
    })
}

/// All certificates of a PEM file.
///
/// # Errors
/// The file has no certificate or is not PEM. The message does not contain the name of the file.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("invalid PEM: {error}"))?;
    if found.is_empty() {
        return Err("no certificate found; expected a certificate as PEM, which begins with \
                    -----BEGIN CERTIFICATE-----"
            .to_owned());
    }
    Ok(found)
}

/// The first private key of a PEM file.
///
/// # Errors
/// The file has no private key, or it is encrypted.
pub fn private_key(file: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if is_encrypted(pem) {
        return Err(format!(
            "the key is encrypted, and the daemon cannot ask for a passphrase; decrypt it with: \
             openssl pkey -in {} -out NEW",
            file.display()
        ));
    }
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| format!("no private key found ({error}); expected a private key as PEM"))
}

/// PKCS #8 and legacy encryption.
fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}
