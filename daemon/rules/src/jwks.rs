//! JSON Web Key Sets (RFC 7517): the public keys of a token issuer.

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

/// The maximum number of keys: a token without a key ID is tried with all of them.
const MAX_KEYS: usize = 64;

/// Public keys from a JSON Web Key Set. They verify RS256 to RS512, PS256 to PS512, ES256, ES384
/// and EdDSA with Ed25519. All other algorithms are rejected, and a key verifies only algorithms of
/// its own type.
#[derive(Clone)]
pub struct KeySet(Vec<PublicKey>);

#[derive(Clone)]
struct PublicKey {
    id: Option<Box<str>>,
    /// The only algorithm of the key, if the set restricts it.
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
    /// Parses a key set. Keys for other purposes, such as encryption, or for unsupported algorithms
    /// are ignored.
    ///
    /// # Errors
    /// The text is not a key set, a key is invalid, or no usable key is left; the error states the
    /// remedy.
    pub fn parse(json: &str) -> Result<Self, String> {
        let set: JwkSet = serde_json::from_str(json).map_err(|error| {
            format!("expected a JSON Web Key Set, an object with a list named \"keys\": {error}")
        })?;
        let mut keys = Vec::new();
        for (index, value) in set.keys.into_iter().enumerate() {
            let key = Jwk::deserialize(value).map_err(|error| format!("keys[{index}]: {error}"))?;
            keys.extend(key.read().map_err(|error| format!("keys[{index}]: {error}"))?);
        }
        match keys.len() {
            0 => Err(
                "the key set has no public key for RS256 to RS512, PS256 to PS512, ES256, ES384 or \
                 EdDSA; add one"
                    .to_owned(),
            ),
            n if n > MAX_KEYS => Err(format!("a key set has at most {MAX_KEYS} keys; found {n}")),
            _ => Ok(KeySet(keys)),
        }
    }

    /// Whether a signature is valid under one of the keys, or under the key with this ID if the
    /// token names one.
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
                let Some(parameters) = rsa_parameters(algorithm) else { return false };
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

fn rsa_parameters(algorithm: &str) -> Option<&'static RsaParameters> {
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

/// The JSON of a key set.
#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

/// The JSON of a key (RFC 7517, section 4, and RFC 7518, section 6).
#[derive(Deserialize)]
struct Jwk {
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

impl Jwk {
    /// The key, if it can verify signatures.
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

    /// A point of a curve, uncompressed (SEC 1, section 2.3.3).
    fn point(&self, bytes: usize) -> Result<Vec<u8>, String> {
        let x = field("x", self.x.as_deref(), bytes..=bytes)?;
        let y = field("y", self.y.as_deref(), bytes..=bytes)?;
        Ok([&[4], &*x, &*y].concat())
    }
}

/// A base64url field of a key, without the leading zeros that some issuers write before a number.
fn field(
    name: &str,
    value: Option<&str>,
    bytes: std::ops::RangeInclusive<usize>,
) -> Result<Vec<u8>, String> {
    let value = value.ok_or_else(|| format!("missing field `{name}`"))?;
    let mut read = URL_SAFE_NO_PAD
        .decode(value)
        .map_err(|error| format!("{name} is not base64url: {error}"))?;
    let (min, max) = (bytes.start(), bytes.end());
    // The coordinates of a point have a fixed length, which includes leading zeros.
    if min < max {
        let zeros = read.iter().take_while(|byte| **byte == 0).count();
        read.drain(..zeros);
    }
    if bytes.contains(&read.len()) {
        return Ok(read);
    }
    let found = read.len();
    Err(match min == max {
        true => format!("{name} has {found} bytes; expected {min}"),
        false => format!("{name} has {found} bytes; expected {min} to {max}"),
    })
}

/// Shows only the number of keys, which are long.
impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} keys)", self.0.len())
    }
}
