use std::path::PathBuf;
use std::{env, fs, process};

use super::*;
use crate::config::{Scope, TokenSecret};

fn token(name: &str, secret: &str, scopes: &[Scope], policies: &[&str]) -> TokenConfig {
    TokenConfig {
        name: name.to_owned(),
        secret: TokenSecret::Text(secret.to_owned()),
        scopes: scopes.to_vec(),
        policies: policies.iter().map(|policy| (*policy).to_owned()).collect(),
    }
}

/// A file that no other process uses.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &[u8]) -> Self {
        let path = env::temp_dir().join(format!("tollgate-token-{}-{name}", process::id()));
        let file = File(path);
        file.write(text);
        file
    }

    fn write(&self, text: &[u8]) {
        fs::write(&self.0, text).unwrap();
    }

    fn token(&self, name: &str) -> TokenConfig {
        let secret = TokenSecret::File(self.0.clone());
        TokenConfig { secret, ..token(name, "", &[Scope::Check], &["*"]) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A file that is left over is removed with the temporary directory.
        let _ = fs::remove_file(&self.0);
    }
}

fn name<'a>(access: &'a Access, secret: &str) -> Option<&'a str> {
    access.authenticate(secret.as_bytes()).map(Principal::name)
}

#[test]
fn only_the_whole_secret_matches() {
    let access = Access::new(&[
        token("one", "first", &[Scope::Check], &["*"]),
        token("two", "second", &[Scope::Check], &["*"]),
    ]);
    let access = access.unwrap();
    for (secret, expected) in [
        ("first", Some("one")),
        ("second", Some("two")),
        ("", None),
        ("firs", None),
        ("first ", None),
        ("First", None),
        ("firstsecond", None),
    ] {
        assert_eq!(name(&access, secret), expected, "{secret:?}");
    }
    assert!(!format!("{access:?}").contains("first"), "{access:?}");
}

#[test]
fn scopes_and_policies_of_a_token_grant_rights() {
    for (scopes, policies, needed, policy, has_scope, has_policy) in [
        (&[Scope::Check][..], &["*"][..], &[Scope::Check][..], "api", true, true),
        (&[Scope::Check], &["api"], &[Scope::Operate], "api", false, true),
        (&[Scope::Read], &["api"], &[Scope::Check, Scope::Read], "apis", true, false),
        (&[Scope::Operate], &["api"], &[Scope::Check], "api", false, true),
        (&[Scope::Admin], &["api-*"], &[Scope::Operate], "api-eu", true, true),
        (&[Scope::Admin], &["api-*"], &[Scope::Read], "api", true, false),
        (&[Scope::Admin], &["api-*", "ip"], &[Scope::Read], "=10/s", true, false),
        (&[Scope::Admin], &["*"], &[Scope::Operate], "=10/s", true, true),
        (&[], &[], &[Scope::Read], "api", false, false),
    ] {
        let access = Access::new(&[token("it", "secret", scopes, policies)]).unwrap();
        let principal = access.authenticate(b"secret").unwrap();
        assert_eq!(principal.authorize(needed, "peek").is_ok(), has_scope, "{scopes:?} {needed:?}");
        assert_eq!(principal.authorize_policy(policy).is_ok(), has_policy, "{policies:?} {policy}");
    }
    let access = Access::new(&[token("gateway", "secret", &[Scope::Check], &["api"])]).unwrap();
    let principal = access.authenticate(b"secret").unwrap();
    assert_eq!(
        principal.authorize(&[Scope::Operate], "reset").unwrap_err().detail(),
        "reset needs the scope operate, which the token \"gateway\" does not have; add it to the \
         token's scopes, or send another token"
    );
    assert_eq!(
        principal.authorize_policy("ip").unwrap_err().detail(),
        "the token \"gateway\" is not valid for the policy \"ip\"; add it to the token's policies, \
         or send another token"
    );
}

#[test]
fn tokens_with_the_same_name_secret_or_certificate_are_rejected() {
    let one = token("one", "first", &[], &[]);
    let of_certificate = |name| {
        let secret = TokenSecret::Certificate("gateway".to_owned());
        TokenConfig { secret, ..token(name, "", &[], &[]) }
    };
    let why = "token \"four\": another token has the same certificate; merge the two, or name \
               another certificate";
    let errors = Access::new(&[of_certificate("three"), of_certificate("four")]).unwrap_err();
    assert_eq!(errors.to_string(), why);
    for (other, why) in [
        (token("one", "second", &[], &[]), "token \"one\": two tokens have that name; rename one"),
        (
            token("two", "first", &[], &[]),
            "token \"two\": another token has the same secret; generate a new one",
        ),
    ] {
        assert_eq!(Access::new(&[one.clone(), other]).unwrap_err().to_string(), why);
    }
}

#[test]
fn a_token_file_is_one_line_without_spaces() {
    for (at, (text, problem)) in [
        (&b"s3cret-of-a-file"[..], None),
        (b"s3cret-of-a-file\n", None),
        (b"s3cret-of-a-file\r\n", None),
        (b"s3cret-of-a-fil\n", Some("the token has 15 bytes, fewer than 16; generate one with")),
        (b"", Some("is empty")),
        (b"\n", Some("is empty")),
        (b"s3cret\n\n", Some("an invalid byte at position 7")),
        (b" s3cret", Some("an invalid byte at position 1")),
        (b"s3\xc3\xa9", Some("an invalid byte at position 3")),
        (&[b'x'; 1025], Some("longer than 1024 bytes")),
    ]
    .into_iter()
    .enumerate()
    {
        let file = File::new(&format!("line-{at}"), text);
        match (Access::new(&[file.token("it")]), problem) {
            (Ok(access), None) => assert_eq!(name(&access, "s3cret-of-a-file"), Some("it")),
            (Err(error), Some(problem)) => {
                let error = error.to_string();
                assert!(error.starts_with("token \"it\": ") && error.contains(problem), "{error}");
            }
            (other, _) => panic!("{text:?}: {other:?}"),
        }
    }
    let missing = File::new("missing", b"");
    fs::remove_file(&missing.0).unwrap();
    let error = Access::new(&[missing.token("it")]).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_world_readable_file_causes_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let secret = File::new("modes", b"s3cret-of-a-file\n");
    for (mode, warns) in [(0o600, false), (0o640, false), (0o644, true), (0o602, true)] {
        fs::set_permissions(&secret.0, fs::Permissions::from_mode(mode)).unwrap();
        let warning = token::read_file(&secret.0).unwrap().warning;
        assert_eq!(warning.is_some(), warns, "{mode:o}");
        assert!(warning.is_none_or(|warning| warning.contains("chmod o-rwx")));
    }
}
