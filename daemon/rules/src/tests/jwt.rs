//! Tokens: validity and claims.

use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::AUTHORIZATION;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use tollgate::Timestamp;

use super::*;

/// The current time in these tests.
const NOW: u64 = 1_763_650_000;

/// A key of each family.
struct Keys {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

impl Keys {
    fn new() -> Self {
        let random = SystemRandom::new();
        let ec = |algorithm: &'static EcdsaSigningAlgorithm| {
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap()
        };
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        // Ring signs with RSA keys but cannot generate them.
        let mut openssl = Command::new("openssl");
        openssl.args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]);
        let output = openssl.output().expect("openssl runs");
        let pem = String::from_utf8(output.stdout).unwrap();
        let lines = pem.lines().filter(|line| !line.starts_with("-----"));
        let pkcs8 = STANDARD.decode(lines.collect::<String>()).unwrap();
        Keys {
            rsa: RsaKeyPair::from_pkcs8(&pkcs8).unwrap(),
            p256: ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
        }
    }

    /// The JSON members of each key in a key set.
    fn published(&self) -> [String; 4] {
        let rsa = PublicKeyComponents::<Vec<u8>>::from(self.rsa.public_key());
        let ec = |curve: &str, key: &EcdsaKeyPair| {
            let point = key.public_key().as_ref();
            let (x, y) = point[1..].split_at(point.len() / 2);
            format!(r#""kty":"EC","crv":"{curve}","x":"{}","y":"{}""#, encoded(x), encoded(y))
        };
        [
            format!(r#""kty":"RSA","n":"{}","e":"{}""#, encoded(&rsa.n), encoded(&rsa.e)),
            ec("P-256", &self.p256),
            ec("P-384", &self.p384),
            format!(
                r#""kty":"OKP","crv":"Ed25519","x":"{}""#,
                encoded(self.ed25519.public_key().as_ref())
            ),
        ]
    }

    /// The set of all keys, each with additional members.
    fn set(&self, more: [&str; 4]) -> KeySet {
        let keys = self.published().into_iter().zip(more);
        let keys: Vec<_> = keys.map(|(key, more)| format!("{{{key}{more}}}")).collect();
        KeySet::parse(&format!(r#"{{"keys":[{}]}}"#, keys.join(","))).unwrap()
    }

    /// A token signed with `algorithm`, which may differ from the one in its header.
    fn token(&self, algorithm: &str, head: &str, claims: &str) -> String {
        let signed = format!("{}.{}", encoded(head.as_bytes()), encoded(claims.as_bytes()));
        let signature = self.sign(algorithm, signed.as_bytes());
        format!("{signed}.{}", encoded(&signature))
    }

    fn sign(&self, algorithm: &str, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(encoding, &random, signed, &mut signature).unwrap();
            signature
        };
        match algorithm {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "RS384" => rsa(&RSA_PKCS1_SHA384),
            "RS512" => rsa(&RSA_PKCS1_SHA512),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "PS384" => rsa(&RSA_PSS_SHA384),
            "PS512" => rsa(&RSA_PSS_SHA512),
            "ES256" => self.p256.sign(&random, signed).unwrap().as_ref().to_vec(),
            "ES384" => self.p384.sign(&random, signed).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed25519.sign(signed).as_ref().to_vec(),
            "" => Vec::new(),
            other => panic!("{other}"),
        }
    }
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The key `{jwt.CLAIM}` of a request with these header lines, or the error.
fn key(jwt: &Jwt, claim: &str, lines: &[&str]) -> String {
    let headers = headers(lines);
    let mut facts = facts("/", &headers);
    facts.jwt = Some(jwt);
    facts.now = Timestamp::from_micros(NOW * 1_000_000);
    let template = Template::parse(&format!("{{jwt.{claim}}}")).unwrap();
    match template.key(&facts, &Path::decoded(b"/"), 64) {
        Ok(key) => String::from_utf8(key).unwrap(),
        Err(KeyError::Missing(_)) => "-".to_owned(),
        Err(other) => other.to_string(),
    }
}

/// A token with an arbitrary header and without a signature.
fn unsigned(head: &str, claims: &str) -> String {
    format!("{}.{}.", encoded(head.as_bytes()), encoded(claims.as_bytes()))
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

/// The claims of a token that does not end soon.
const CLAIMS: &str = r#"{"sub":"u","exp":9999999999}"#;

const ALL: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

#[test]
fn signatures_are_bound_to_algorithm_and_key() {
    let keys = Keys::new();
    let jwt = Jwt::signed(keys.set([r#","kid":"r""#, r#","kid":"e""#, r#","kid":"e3""#, ""]));
    let ids = [("r", "RS PS"), ("e", "ES256"), ("e3", "ES384")];
    for signed in ALL {
        for named in ALL {
            let token = keys.token(signed, &format!(r#"{{"alg":"{named}"}}"#), CLAIMS);
            let expected = if named == signed { "u" } else { "-" };
            assert_eq!(key(&jwt, "sub", &[&bearer(&token)]), expected, "{signed} {named}");
        }
        for (id, families) in ids {
            let head = format!(r#"{{"alg":"{signed}","kid":"{id}"}}"#);
            let token = keys.token(signed, &head, CLAIMS);
            let fits = families.split(' ').any(|part| signed.starts_with(part));
            let expected = if fits { "u" } else { "-" };
            assert_eq!(key(&jwt, "sub", &[&bearer(&token)]), expected, "{signed} {id}");
        }
    }
}

#[test]
fn unsigned_and_forged_tokens_have_no_claims() {
    let keys = Keys::new();
    let only_rs256 = [r#","alg":"RS256","use":"sig","key_ops":["verify"]"#, "", "", ""];
    let jwt = Jwt::signed(keys.set(only_rs256));
    let head = |text: &str| format!("{{{text}}}");
    let claims = CLAIMS;
    for (signed, header, expected) in [
        ("RS256", r#""alg":"RS256""#, "u"),
        // The key is restricted to another algorithm.
        ("RS512", r#""alg":"RS512""#, "-"),
        ("PS256", r#""alg":"PS256""#, "-"),
        ("", r#""alg":"none""#, "-"),
        ("", r#""alg":"None""#, "-"),
        ("", r#""alg":"""#, "-"),
        ("ES256", r#""alg":"HS256""#, "-"),
        ("ES256", r#""alg":"ES256","kid":"other""#, "-"),
        ("ES256", r#""alg":"ES256","crit":["exp"]"#, "-"),
        ("ES256", r#""alg":"ES256","alg":"ES256""#, "-"),
        ("ES256", r#""alg":["ES256"]"#, "-"),
        ("ES256", r#""typ":"JWT""#, "-"),
    ] {
        let token = keys.token(signed, &head(header), claims);
        assert_eq!(key(&jwt, "sub", &[&bearer(&token)]), expected, "{header}");
    }
    // A public key cannot be used as an HMAC secret.
    let rsa = &keys.published()[0];
    let forged = unsigned(r#"{"alg":"HS256"}"#, claims) + &encoded(rsa.as_bytes());
    assert_eq!(key(&jwt, "sub", &[&bearer(&forged)]), "-");
    // A change of any one byte invalidates the token.
    let token = keys.token("EdDSA", r#"{"alg":"EdDSA"}"#, claims);
    assert_eq!(key(&jwt, "sub", &[&bearer(&token)]), "u");
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(key(&jwt, "sub", &[&bearer(&changed)]), "-", "{at}: {changed}");
    }
}

#[test]
fn tokens_are_valid_between_their_times_for_issuer_and_audience() {
    let keys = Keys::new();
    let jwt = Jwt {
        issuer: Some("https://issuer".into()),
        audience: Some("api".into()),
        leeway: Duration::from_secs(10),
        require_exp: false,
        ..Jwt::signed(keys.set([""; 4]))
    };
    let who = r#""sub":"u","iss":"https://issuer","aud":"api""#;
    for (claims, expected) in [
        (who.to_owned(), "u"),
        (format!(r#"{who},"exp":{}"#, NOW + 1), "u"),
        (format!(r#"{who},"exp":{}"#, NOW - 9), "u"),
        (format!(r#"{who},"exp":{}"#, NOW - 10), "-"),
        (format!(r#"{who},"exp":{}.5"#, NOW), "u"),
        (format!(r#"{who},"nbf":{}"#, NOW + 10), "u"),
        (format!(r#"{who},"nbf":{}"#, NOW + 11), "-"),
        // A malformed time invalidates the token (CVE-2026-25537).
        (format!(r#"{who},"exp":"{}""#, NOW + 1), "-"),
        (format!(r#"{who},"exp":null"#), "-"),
        (format!(r#"{who},"exp":-1"#), "-"),
        (format!(r#"{who},"exp":1e30"#), "-"),
        (format!(r#"{who},"nbf":"0""#), "-"),
        (r#""sub":"u","aud":"api""#.to_owned(), "-"),
        (r#""sub":"u","iss":"https://issuer""#.to_owned(), "-"),
        (r#""sub":"u","iss":"https://issuer2","aud":"api""#.to_owned(), "-"),
        (r#""sub":"u","iss":"https://issuer","aud":["web","api"]"#.to_owned(), "u"),
        (r#""sub":"u","iss":"https://issuer","aud":["web"]"#.to_owned(), "-"),
        (r#""sub":"u","iss":"https://issuer","aud":{"api":"api"}"#.to_owned(), "-"),
    ] {
        let token = keys.token("ES256", r#"{"alg":"ES256"}"#, &format!("{{{claims}}}"));
        assert_eq!(key(&jwt, "sub", &[&bearer(&token)]), expected, "{claims}");
    }
}

#[test]
fn tokens_without_an_expiry_are_invalid_by_default() {
    let keys = Keys::new();
    let strict = Jwt::signed(keys.set([""; 4]));
    let lenient = Jwt { require_exp: false, ..strict.clone() };
    let unverified = Jwt::unverified();
    for (claims, by_strict) in [
        (r#"{"sub":"u"}"#.to_owned(), "-"),
        (format!(r#"{{"sub":"u","nbf":{}}}"#, NOW - 1), "-"),
        (r#"{"sub":"u","Exp":9999999999}"#.to_owned(), "-"),
        (CLAIMS.to_owned(), "u"),
    ] {
        let token = bearer(&keys.token("EdDSA", r#"{"alg":"EdDSA"}"#, &claims));
        assert_eq!(key(&strict, "sub", &[&token]), by_strict, "{claims}");
        assert_eq!(key(&lenient, "sub", &[&token]), "u", "{claims}");
        assert_eq!(key(&unverified, "sub", &[&token]), "u", "{claims}");
    }
}

#[test]
fn claims_are_strings_numbers_or_booleans() {
    let claims = r#"{"sub":"u","id":7,"pro":true,"none":null,"list":["a"],"empty":"",
        "user":{"org":{"id":"o"}},"https://a.example/t":"t","a.b":"1","a":{"b":"2","c":"3"}}"#;
    let token = unsigned(r#"{"alg":"RS256"}"#, claims);
    for (claim, expected) in [
        ("sub", "u"),
        ("id", "7"),
        ("pro", "true"),
        ("none", "-"),
        ("list", "-"),
        ("empty", "-"),
        ("user", "-"),
        ("user.org.id", "o"),
        ("user.org", "-"),
        ("user.org.id.x", "-"),
        ("https://a.example/t", "t"),
        ("a.b", "1"),
        ("a.c", "3"),
        ("Sub", "-"),
    ] {
        assert_eq!(key(&Jwt::unverified(), claim, &[&bearer(&token)]), expected, "{claim}");
    }
}

#[test]
fn tokens_are_read_from_the_configured_header() {
    let token = unsigned(r#"{"alg":"RS256"}"#, r#"{"sub":"u"}"#);
    let other = unsigned(r#"{"alg":"RS256"}"#, r#"{"sub":"v"}"#);
    let none = unsigned(r#"{"alg":"none"}"#, r#"{"sub":"u"}"#);
    let own = HeaderName::from_static("x-token");
    for (header, lines, expected) in [
        (AUTHORIZATION, &[format!("authorization: bearer {token}")][..], "u"),
        (AUTHORIZATION, &[format!("authorization: Basic {token}")], "-"),
        (AUTHORIZATION, &[format!("authorization: {token}")], "-"),
        (AUTHORIZATION, &[format!("x-token: {token}")], "-"),
        (AUTHORIZATION, &[bearer(&none)], "-"),
        (AUTHORIZATION, &[bearer(&token), bearer(&token)], "u"),
        (
            AUTHORIZATION,
            &[bearer(&token), bearer(&other)],
            "the request has several values for header.authorization; send one",
        ),
        (own.clone(), &[format!("x-token: {token}")], "u"),
        (own.clone(), &[format!("x-token: Bearer {token}")], "u"),
        (own.clone(), &["x-token: a.b.c".to_owned()], "-"),
        (own, &["x-token: ".to_owned()], "-"),
    ] {
        let jwt = Jwt { header, ..Jwt::unverified() };
        let lines: Vec<_> = lines.iter().map(|line| &**line).collect();
        assert_eq!(key(&jwt, "sub", &lines), expected, "{lines:?}");
    }
}

/// The example of RFC 8037, appendix A.4.
#[test]
fn rfc_8037_example_verifies() {
    let keys = r#"{"keys":[{"kty":"OKP","crv":"Ed25519",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature = URL_SAFE_NO_PAD
        .decode(
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        )
        .unwrap();
    let keys = KeySet::parse(keys).unwrap();
    assert!(keys.verify("EdDSA", None, signed, &signature));
    assert!(!keys.verify("EdDSA", None, &signed[1..], &signature));
}

#[test]
fn invalid_key_sets_are_rejected() {
    let none = "the key set has no public key for RS256 to RS512, PS256 to PS512, ES256, ES384 or \
                EdDSA; add one";
    for (json, remedy) in [
        ("", "expected a JSON Web Key Set, an object with a list named \"keys\": EOF"),
        ("[]", "expected a JSON Web Key Set, an object with a list named \"keys\": "),
        (r#"{"keys":[]}"#, none),
        (r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#, none),
        (r#"{"keys":[{"kty":"RSA","use":"enc"}]}"#, none),
        (r#"{"keys":[{"kty":"RSA","key_ops":["encrypt"]}]}"#, none),
        (r#"{"keys":[{"kty":"EC","crv":"P-521","x":"","y":""}]}"#, none),
        (r#"{"keys":[{"kid":"a"}]}"#, "keys[0]: missing field `kty`"),
        (r#"{"keys":[{"kty":"RSA"}]}"#, "keys[0]: missing field `n`"),
        (
            r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
            "keys[0]: n has 3 bytes; expected 256 to 1024",
        ),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"a+b"}]}"#, "keys[0]: x is not base64url: "),
        (
            r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]}"#,
            "keys[0]: x has 3 bytes; expected 32",
        ),
    ] {
        let error = KeySet::parse(json).unwrap_err();
        assert!(error.starts_with(remedy), "{json}: {error}");
    }
    let many = vec![
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        65
    ];
    let error = KeySet::parse(&format!(r#"{{"keys":[{}]}}"#, many.join(","))).unwrap_err();
    assert_eq!(error, "a key set has at most 64 keys; found 65");
}
