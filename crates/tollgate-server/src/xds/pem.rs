//! The files that TLS with a control plane needs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::options::XdsTls;

/// The most bytes that are read of a file.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Its field of `envoy.xds`.
    pub(crate) field: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) why: String,
}

/// All files that cannot be used; blocks while it reads them.
pub(crate) fn mistakes(tls: &XdsTls) -> Vec<Mistake> {
    let found = [ca(tls).err(), cert(tls).err(), key(tls).err()];
    found.into_iter().flatten().collect()
}

/// How TLS is spoken; blocks while it reads the files.
pub(super) fn config(tls: &XdsTls) -> Result<ClientTlsConfig, String> {
    let said = |it: Mistake| format!("{}: {}: {}", it.field, it.file.display(), it.why);
    let config = ClientTlsConfig::new();
    let mut config = match ca(tls).map_err(said)? {
        Some(pem) => config.ca_certificate(Certificate::from_pem(pem)),
        None => config.with_native_roots(),
    };
    if let (Some(cert), Some(key)) = (cert(tls).map_err(said)?, key(tls).map_err(said)?) {
        config = config.identity(Identity::from_pem(cert, key));
    }
    Ok(match &tls.san {
        Some(name) => config.domain_name(name),
        None => config,
    })
}

fn ca(tls: &XdsTls) -> Result<Option<Vec<u8>>, Mistake> {
    certificates("ca", tls.ca.as_deref())
}

fn cert(tls: &XdsTls) -> Result<Option<Vec<u8>>, Mistake> {
    certificates("cert", tls.cert.as_deref())
}

fn certificates(field: &'static str, file: Option<&Path>) -> Result<Option<Vec<u8>>, Mistake> {
    let is_one = |pem: &[u8]| {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|it| format!("it is no PEM: {it}"))?;
        match found.is_empty() {
            true => Err("there is no certificate in it; write one as PEM".to_owned()),
            false => Ok(()),
        }
    };
    file.map(|file| read(field, file, is_one)).transpose()
}

fn key(tls: &XdsTls) -> Result<Option<Vec<u8>>, Mistake> {
    let is_one = |pem: &[u8]| {
        let read = PrivateKeyDer::from_pem_slice(pem);
        read.map(|_| ()).map_err(|it| {
            format!("there is no private key in it that is not encrypted ({it}); write one as PEM")
        })
    };
    tls.key.as_deref().map(|file| read("key", file, is_one)).transpose()
}

fn read(
    field: &'static str,
    path: &Path,
    is_one: impl Fn(&[u8]) -> Result<(), String>,
) -> Result<Vec<u8>, Mistake> {
    let mistake = |why: String| Mistake { field, file: path.to_owned(), why };
    let unreadable = |it: std::io::Error| mistake(format!("it cannot be read: {it}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut pem = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut pem).map_err(unreadable)?;
    if u64::try_from(pem.len()).is_ok_and(|it| it > MOST_BYTES) {
        return Err(mistake(format!("it has more than {MOST_BYTES} bytes; is it the right one?")));
    }
    is_one(&pem).map_err(mistake)?;
    Ok(pem)
}
