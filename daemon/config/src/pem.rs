//! Certificates and private keys in files of PEM, and what is wrong with those that are none.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The most bytes that are read of a file.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What is in a file, as it is there.
///
/// # Errors
/// It cannot be read, or is too long; why, without the file's name.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let file = File::open(path).map_err(unreadable)?;
    let mut contents = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut contents).map_err(unreadable)?;
    if u64::try_from(contents.len()).is_ok_and(|x| x <= MAX_BYTES) {
        return Ok(contents);
    }
    Err(format!("it has more than {MAX_BYTES} bytes; is it the right one?"))
}

/// All certificates of a PEM.
///
/// # Errors
/// There is none, or it is no PEM; why, without a file's name.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("it is no PEM: {error}"))?;
    if found.is_empty() {
        let why =
            "there is no certificate in it; write one as PEM, from -----BEGIN CERTIFICATE-----";
        return Err(why.to_owned());
    }
    Ok(found)
}

/// The first private key of a PEM that was read from this file.
///
/// # Errors
/// There is none, or it is encrypted; why, and the file's name only in what to do.
pub fn private_key(file: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if is_encrypted(pem) {
        return Err(format!(
            "it is encrypted, and nobody is there to type its passphrase; write it without one: \
             openssl pkey -in {} -out NEW",
            file.display()
        ));
    }
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| format!("there is no private key in it ({error}); write one as PEM"))
}

/// Both ways in which a PEM says so.
fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}
