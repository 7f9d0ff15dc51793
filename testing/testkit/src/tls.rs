//! Generated certificates for a server and a client.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The host names of the server.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The files of a certificate authority and of the two certificates that it signs.
#[derive(Debug)]
pub(crate) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// The files in `folder`, whether or not they exist yet.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Generates the keys and certificates.
    pub(crate) fn write(&self) {
        let mut params = params("Tollgate tests", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key is generated");
        let ca = params.self_signed(&key).expect("an authority signs itself");
        write(&self.ca(), &ca.pem());

        let issuer = Issuer::new(params, key);
        let server = ExtendedKeyUsagePurpose::ServerAuth;
        issue(&issuer, "server", &NAMES, server, &self.certificate(), &self.key());
        let client = ExtendedKeyUsagePurpose::ClientAuth;
        issue(&issuer, "client", &[], client, &self.client_certificate(), &self.client_key());
    }

    /// The configuration lines with the paths.
    pub(crate) fn lines(&self, auth_clients: &str) -> String {
        format!(
            "tls-ca-cert-file {}\ntls-cert-file {}\ntls-key-file {}\ntls-auth-clients \
             {auth_clients}\n",
            self.ca().display(),
            self.certificate().display(),
            self.key().display(),
        )
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    pub(crate) fn client_certificate(&self) -> PathBuf {
        self.folder.join("client.pem")
    }

    pub(crate) fn client_key(&self) -> PathBuf {
        self.folder.join("client.key")
    }

    fn certificate(&self) -> PathBuf {
        self.folder.join("server.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.join("server.key")
    }
}

fn issue(
    issuer: &Issuer<'_, KeyPair>,
    name: &str,
    hosts: &[&str],
    usage: ExtendedKeyUsagePurpose,
    certificate: &Path,
    key: &Path,
) {
    let mut params = params(name, hosts);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    let pair = KeyPair::generate().expect("a key is generated");
    let signed = params.signed_by(&pair, issuer).expect("the authority signs");
    write(certificate, &signed.pem());
    write(key, &pair.serialize_pem());
}

/// A certificate request. The default validity of two thousand years needs no clock.
fn params(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).expect("the names are well formed");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn write(path: &Path, pem: &str) {
    fs::write(path, pem).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}
