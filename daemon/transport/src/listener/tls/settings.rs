//! The rustls configuration of a listener.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};

use super::client_name::NamedClients;
use super::error::TlsError;
use super::files::Contents;
use tollgate_config::TlsConfig;

/// The ALPN protocols, in order of preference.
const ALPN_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Builds a configuration for TLS 1.2 and 1.3 with this chain. The session cache belongs to the
/// configuration, so after a change no client resumes a session that a removed authority allowed.
pub(super) fn build(
    files: &TlsConfig,
    contents: &Contents,
    chain: Vec<CertificateDer<'static>>,
) -> Result<ServerConfig, TlsError> {
    // Explicit, so that it does not depend on the default provider of the process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::cert(files, error.to_string()))?;
    let builder = match verifier(files, contents, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let settings = builder.with_single_cert(chain, contents.key(files)?);
    let mut settings = settings.map_err(|error| pair_error(files, &error))?;
    settings.alpn_protocols = ALPN_PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(settings)
}

fn verifier(
    files: &TlsConfig,
    contents: &Contents,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let Some((file, authorities)) = contents.client_ca(files)? else { return Ok(None) };
    let failed = |reason: String| TlsError::new("client_ca", file, reason);
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(authority)
            .map_err(|error| failed(format!("it is not a certificate authority: {error}")))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| failed(error.to_string()))?;
    Ok(Some(match &files.client_name {
        Some(name) => Arc::new(NamedClients::new(verifier, name).map_err(failed)?),
        None => verifier,
    }))
}

fn pair_error(files: &TlsConfig, error: &Error) -> TlsError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let cert = files.cert.display();
            let reason = format!(
                "it does not match the certificate in {cert}; the first certificate in that file \
                 must belong to this key"
            );
            TlsError::key(files, reason)
        }
        Error::InvalidCertificate(reason) => TlsError::cert(files, format!("{reason:?}")),
        other => TlsError::key(files, format!("{other}; write an RSA, ECDSA or Ed25519 key")),
    }
}
