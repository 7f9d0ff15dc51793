//! TLS: CA bundle and client certificate.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tollgate_state::{Failure, FailureKind};

use crate::options::{Pem, RedisOptions};

/// The CA bundle (default: system roots) and the client certificate.
#[derive(Debug)]
pub(crate) struct Tls {
    files: Arc<Files>,
    /// The name in the certificates, in place of the host.
    server_name: Option<String>,
    /// The configuration, until a file changes.
    cached: Mutex<Option<(Modified, Arc<ClientConfig>)>>,
}

#[derive(Debug)]
struct Files {
    ca: Option<Pem>,
    cert: Option<Pem>,
    key: Option<Pem>,
}

/// When each file was last modified.
type Modified = [Option<SystemTime>; 3];

impl Tls {
    pub(super) fn new(options: &RedisOptions) -> Self {
        let RedisOptions { ca, cert, key, .. } = options;
        let files = Files { ca: ca.clone(), cert: cert.clone(), key: key.clone() };
        let server_name = options.tls_server_name.clone();
        Tls { files: Arc::new(files), server_name, cached: Mutex::default() }
    }

    /// Performs the handshake with a host.
    pub(super) async fn wrap(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let name = ServerName::try_from(self.server_name.as_deref().unwrap_or(host).to_owned())
            .map_err(|_| failure("host name", "not a valid name for a certificate"))?;
        let connector = TlsConnector::from(self.config().await?);
        connector.connect(name, stream).await.map_err(|error| failure("handshake", error))
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let files = Arc::clone(&self.files);
        let cached = lock(&self.cached).clone();
        // On a blocking thread, because it reads files.
        let config = tokio::task::spawn_blocking(move || {
            let modified = files.modified();
            match cached {
                Some((cached_at, config)) if cached_at == modified => Ok((modified, config)),
                _ => files.config().map(|config| (modified, Arc::new(config))),
            }
        });
        let config = config.await.map_err(|error| failure("configuration", error))??;
        *lock(&self.cached) = Some(config.clone());
        Ok(config.1)
    }
}

impl Files {
    fn modified(&self) -> Modified {
        [&self.ca, &self.cert, &self.key].map(|pem| match pem {
            Some(Pem::Path(path)) => path.metadata().and_then(|file| file.modified()).ok(),
            Some(Pem::Bytes(_)) | None => None,
        })
    }

    fn config(&self) -> Result<ClientConfig, Failure> {
        // Independent of the default provider of the process.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failure("configuration", error))?
            .with_root_certificates(self.roots()?);
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else {
            return Ok(config.with_no_client_auth());
        };
        let key = PrivateKeyDer::from_pem_slice(&read("key", key)?)
            .map_err(|error| failure("key", error))?;
        config
            .with_client_auth_cert(certificates("cert", cert)?, key)
            .map_err(|error| failure("cert and key", error))
    }

    fn roots(&self) -> Result<RootCertStore, Failure> {
        let mut roots = RootCertStore::empty();
        let Some(ca) = &self.ca else {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if let Some(error) = found.errors.first().filter(|_| roots.is_empty()) {
                return Err(failure("system certificates", error));
            }
            return Ok(roots);
        };
        for certificate in certificates("ca", ca)? {
            roots.add(certificate).map_err(|error| failure("ca", error))?;
        }
        Ok(roots)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn certificates(option: &str, pem: &Pem) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let pem = read(option, pem)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| failure(option, error))?;
    if found.is_empty() { Err(failure(option, "no certificate found")) } else { Ok(found) }
}

fn read(option: &str, pem: &Pem) -> Result<Vec<u8>, Failure> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| failure(option, format!("{}: {error}", path.display())))
    };
    match pem {
        Pem::Bytes(bytes) => Ok(bytes.clone()),
        Pem::Path(path) => read(path),
    }
}

fn failure(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Unreachable, format!("TLS {what}: {why}"))
}
