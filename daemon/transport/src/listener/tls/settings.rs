//! The rustls configuration of a listener.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, InconsistentKeys, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tollgate_config::{FileProblem, TlsConfig};

use super::files::{CERT, CLIENT_CA, Contents, KEY};

/// The ALPN protocols, in order of preference.
const ALPN_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Builds a configuration for TLS 1.2 and 1.3 with this chain. The session cache belongs to the
/// configuration, so after a change no client resumes a session that a removed authority allowed.
pub(super) fn build(
    files: &TlsConfig,
    contents: &Contents,
    chain: Vec<CertificateDer<'static>>,
) -> Result<ServerConfig, FileProblem> {
    // Explicit, so that it does not depend on the default provider of the process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| FileProblem::new(CERT, &files.cert, error.to_string()))?;
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
) -> Result<Option<Arc<dyn ClientCertVerifier>>, FileProblem> {
    let Some((file, authorities)) = contents.client_ca(files)? else { return Ok(None) };
    let failed = |reason: String| FileProblem::new(CLIENT_CA, file, reason);
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

fn pair_error(files: &TlsConfig, error: &Error) -> FileProblem {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let cert = files.cert.display();
            let reason = format!(
                "it does not match the certificate in {cert}; the first certificate in that file \
                 must belong to this key"
            );
            FileProblem::new(KEY, &files.key, reason)
        }
        Error::InvalidCertificate(reason) => {
            FileProblem::new(CERT, &files.cert, format!("{reason:?}"))
        }
        other => FileProblem::new(
            KEY,
            &files.key,
            format!("{other}; write an RSA, ECDSA or Ed25519 key"),
        ),
    }
}

/// Accepts a client certificate that another verifier accepts and that has this subject alternative
/// name.
#[derive(Debug)]
struct NamedClients {
    verifier: Arc<dyn ClientCertVerifier>,
    name: ServerName<'static>,
}

impl NamedClients {
    fn new(verifier: Arc<dyn ClientCertVerifier>, name: &str) -> Result<NamedClients, String> {
        let invalid =
            |_| format!("{name:?} is not a name that a certificate can have; write a host name");
        let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
        Ok(NamedClients { verifier, name })
    }
}

impl ClientCertVerifier for NamedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.verifier.verify_client_cert(end_entity, intermediates, now)?;
        // The rules for matching names are the same for clients and servers.
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, &self.name)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
