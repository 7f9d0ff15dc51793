//! A certificate authority for tests.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tollgate_daemon::{Tls, TlsConfig};
use tollgate_testkit::Folder;

/// The PEM of an encrypted key.
pub(crate) const ENCRYPTED_KEY: &str =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";

/// A certificate authority, with a directory for files.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
    pub(crate) directory: Folder,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem, directory: Folder::create() }
    }

    /// Signs a certificate with this common name, for a server at localhost or for a client.
    pub(crate) fn sign(&self, name: &str) -> Pair {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { cert, key: key.serialize_pem() }
    }

    /// Writes a certificate and its key to `cert.pem` and `key.pem`.
    pub(crate) fn write_pair(&self, pair: &Pair) -> TlsConfig {
        let write = |name: &str, text: &str| self.directory.write(name, text);
        TlsConfig::new(write("cert.pem", &pair.cert), write("key.pem", &pair.key))
    }

    /// The TLS settings of a daemon with a certificate of this authority.
    pub(crate) fn tls(&self) -> Tls {
        Tls::open(self.write_pair(&self.sign("daemon"))).unwrap()
    }

    /// Writes the authority's own certificate.
    pub(crate) fn write_ca(&self) -> std::path::PathBuf {
        self.directory.write("ca.pem", &self.pem)
    }

    /// The TLS files of a daemon that requires client certificates of this authority.
    pub(crate) fn write_mutual_tls(&self) -> TlsConfig {
        let mut files = self.write_pair(&self.sign("daemon"));
        files.client_ca = Some(self.write_ca());
        files
    }

    /// A client that trusts this authority, with an optional certificate of its own.
    pub(crate) fn client(&self, own: Option<&Pair>, alpn: &[&[u8]]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(der(&self.pem)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![der(&pair.cert)], key).unwrap()
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}

/// Decodes a PEM certificate.
pub(crate) fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}
