//! The keys that tokens are signed with (RFC 7517), as whoever issues the tokens publishes them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// The most keys of a set: a token that names none is tried with all.
const MAX_KEYS: usize = 64;

/// Public keys, read from a JSON Web Key Set. They verify RS256 to RS512, PS256 to PS512, ES256, ES384
/// and EdDSA with Ed25519; nothing else is ever valid, and no key serves another family than its own.
#[derive(Clone)]
pub struct KeySet(Vec<PublicKey>);

#[derive(Clone)]
struct PublicKey {
    id: Option<Box<str>>,
    /// The only algorithm that it is for, if it says so.
    algorithm: Option<Box<str>>,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl KeySet {
    /// Reads a set of keys. Those that are for something else, such as encryption, or for algorithms
    /// that are not verified here, are left aside.
    ///
    /// # Errors
    /// It is no set, a key is not what it says it is, or none is left; the error says what to write.
    pub fn parse(json: &str) -> Result<Self, String> {
        let set: Written = serde_json::from_str(json).map_err(|error| {
            format!("write a JSON Web Key Set, an object with a list of keys in \"keys\": {error}")
        })?;
        let mut keys = Vec::new();
        for (index, value) in set.keys.into_iter().enumerate() {
            let key = WrittenKey::deserialize(value)
                .map_err(|error| format!("keys[{index}]: {error}"))?;
            keys.extend(key.read().map_err(|error| format!("keys[{index}]: {error}"))?);
        }
        match keys.len() {
            0 => Err(
                "write a key set with a public key for RS, PS, ES256, ES384 or EdDSA signatures"
                    .to_owned(),
            ),
            n if n > MAX_KEYS => Err(format!("write at most {MAX_KEYS} keys; these are {n}")),
            _ => Ok(KeySet(keys)),
        }
    }

    /// Whether one of the keys made a signature: one of this id, if it is told.
    pub(super) fn verify(
        &self,
        algorithm: &str,
        id: Option<&str>,
        signed: &str,
        signature: &[u8],
    ) -> bool {
        self.0.iter().any(|key| {
            id.is_none_or(|id| key.id.as_deref() == Some(id))
                && key.algorithm.as_deref().is_none_or(|a| a == algorithm)
                && key.material.verify(algorithm, signed.as_bytes(), signature)
        })
    }
}

impl Material {
    fn verify(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        let verified = match (algorithm, self) {
            (_, Material::Rsa { modulus, exponent }) => {
                let Some(parameters) = of_rsa(algorithm) else { return false };
                RsaPublicKeyComponents { n: modulus, e: exponent }
                    .verify(parameters, signed, signature)
            }
            ("ES256", Material::P256(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            ("ES384", Material::P384(point)) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(signed, signature)
            }
            ("EdDSA" | "Ed25519", Material::Ed25519(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

fn of_rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// A set as it is written.
#[derive(Deserialize)]
struct Written {
    keys: Vec<Value>,
}

/// A key as it is written.
#[derive(Deserialize)]
struct WrittenKey {
    kty: String,
    kid: Option<Box<str>>,
    alg: Option<Box<str>>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl WrittenKey {
    /// The key, if it is one to verify with.
    fn read(self) -> Result<Option<PublicKey>, String> {
        let signs = self.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let verifies = self.key_ops.as_ref().is_none_or(|all| all.iter().any(|x| x == "verify"));
        if !signs || !verifies {
            return Ok(None);
        }
        let material = match (&*self.kty, self.crv.as_deref()) {
            ("RSA", _) => {
                let modulus = field("n", self.n.as_deref(), 256..=1024)?;
                Material::Rsa { modulus, exponent: field("e", self.e.as_deref(), 1..=5)? }
            }
            ("EC", Some("P-256")) => Material::P256(self.point(32)?),
            ("EC", Some("P-384")) => Material::P384(self.point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(field("x", self.x.as_deref(), 32..=32)?),
            _ => return Ok(None),
        };
        Ok(Some(PublicKey { id: self.kid, algorithm: self.alg, material }))
    }

    /// A point of a curve, not compressed (SEC 1, 2.3.3).
    fn point(&self, bytes: usize) -> Result<Vec<u8>, String> {
        let x = field("x", self.x.as_deref(), bytes..=bytes)?;
        let y = field("y", self.y.as_deref(), bytes..=bytes)?;
        Ok([&[4], &*x, &*y].concat())
    }
}

/// A number of a key, without the zeros that some write before it.
fn field(
    name: &str,
    value: Option<&str>,
    bytes: std::ops::RangeInclusive<usize>,
) -> Result<Vec<u8>, String> {
    let value = value.ok_or_else(|| format!("write its {name}"))?;
    let read = URL_SAFE_NO_PAD
        .decode(value)
        .map_err(|error| format!("{name} is no base64url: {error}"))?;
    // Points have a fixed length; zeros before them are part of it.
    let zeros = read.iter().take_while(|x| **x == 0).count();
    let is_number = bytes.start() < bytes.end();
    let read = if is_number { read.get(zeros..).unwrap_or_default().to_vec() } else { read };
    if bytes.contains(&read.len()) {
        return Ok(read);
    }
    let (least, most) = (bytes.start(), bytes.end());
    Err(format!("{name} has {} bytes; it must have {least} to {most}", read.len()))
}

/// How many there are; they are public, and long.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} keys)", self.0.len())
    }
}
