//! The files that a configuration references: which are read, and their errors.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use tollgate_daemon::{Layers, check_files};
use tollgate_testkit::Folder;

use super::domain;
use crate::support::certificates::{Authority, ENCRYPTED_KEY};
use crate::support::split_table;

/// What reports the errors of referenced files.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Reading the configuration.
    Read,
    /// [`check_files`] for a configuration that was read.
    CheckFiles,
}

/// Reads a configuration in a directory, and then the files that it names. Compares the errors of
/// this stage, one a line, with the expected beginnings of lines. The other stage must succeed.
fn check(directory: &Folder, stage: Stage, yaml: &str, expected: &[&str]) {
    let name = directory.join("tollgate.yaml").display().to_string();
    let result = Layers::new().named_yaml(&name, yaml).read();
    let errors = match stage {
        Stage::Read => result.map(|loaded| check_files(&loaded).unwrap()).err(),
        Stage::CheckFiles => check_files(&result.unwrap()).err(),
    };
    let errors = errors.map_or(String::new(), |errors| errors.to_string());
    let errors = errors.replace(&format!("{}/", directory.display()), "");
    assert_eq!(errors.lines().count(), expected.len(), "{errors}\n{expected:?}");
    for (line, expected) in errors.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
    assert!(!errors.contains("s3cret"), "{errors}");
}

/// Checks `count` configurations, in which `\n` is a line end, each with the lines of its errors.
fn check_rows(directory: &Folder, stage: Stage, rows: &str, count: usize) {
    for row in split_table(rows, "> ", count) {
        let mut lines = row.lines().filter(|line| !line.starts_with('#'));
        let yaml = format!("{}\n", lines.next().unwrap().replace(r"\n", "\n"));
        let expected: Vec<_> = lines.map(|line| line.strip_prefix("< ").unwrap()).collect();
        check(directory, stage, &yaml, &expected);
    }
}

#[test]
fn override_and_password_files_are_checked() {
    let directory = Folder::create();
    directory.write("good.csv", "key,limits\nvip,100/s\n");
    directory.write("bad.csv", "key,limits\nvip,1/month\n10.0.0.1/8,1/s\n");
    directory.write("password", "s3cret\n");
    directory.write("empty", "\n");
    let rows = r#"
> policies:\n  a.b: { limits: [1/s], overrides_file: good.csv }
> policies:\n  a.b: { limits: [1/s], overrides_file: bad.csv }
< tollgate.yaml:2:41: policies.a.b.overrides_file: bad.csv:2: limits:
< tollgate.yaml:2:41: policies.a.b.overrides_file: bad.csv:3: key: "10.0.0.1/8":
> policies:\n  a.b: { limits: [1/s], overrides_file: none.csv }
< tollgate.yaml:2:41: policies.a.b.overrides_file: none.csv: cannot be read:
> store: { url: redis://h, password_file: password }
> store: { url: redis://h, password_file: empty }
< tollgate.yaml:1:41: store.password_file: empty: the file is empty; write the password
> store: { url: redis://h, password_file: none }
< tollgate.yaml:1:41: store.password_file: none: cannot be read:
> store: { url: redis://h, password_file: none }\npolicies:\n  a.b: { limits: [1/s], overrides_file: none.csv }
< tollgate.yaml:1:41: store.password_file:
< tollgate.yaml:3:41: policies.a.b.overrides_file:
"#;
    check_rows(&directory, Stage::CheckFiles, rows, 7);
}

#[test]
fn tls_files_are_checked_against_each_other() {
    let authority = Authority::new();
    let (own, other) = (authority.sign("own"), authority.sign("other"));
    authority.write_pair(&own);
    authority.directory.write("other.pem", &other.key);
    let rows = "
> listen: { tls: { cert: cert.pem, key: key.pem } }
> listen: { tls: { cert: none, key: none, client_ca: none } }
< tollgate.yaml:1:24: listen.tls.cert: none: cannot be read:
< tollgate.yaml:1:35: listen.tls.key: none: cannot be read:
< tollgate.yaml:1:52: listen.tls.client_ca: none: cannot be read:
> listen: { tls: { cert: cert.pem, key: other.pem } }
< tollgate.yaml:1:39: listen.tls.key: other.pem: it does not match the certificate in
";
    check_rows(&authority.directory, Stage::CheckFiles, rows, 3);
}

#[test]
fn token_files_are_checked() {
    let directory = Folder::create();
    directory.write("token", "s3cret-of-a-file");
    directory.write("spaced", "s3cret of a file");
    directory.write("empty", "");
    directory.write("short", "s3cret-of-a-fil\n");
    let rows = r"
> tokens:\n  - { name: a, token_file: token, scopes: [check] }\n  - { name: b, token: the-token-of-another, scopes: [check] }
> tokens:\n  - { name: a, token_file: spaced, scopes: [check] }\n  - { name: b, token_file: empty, scopes: [check] }
< tollgate.yaml:2:28: tokens[0].token_file: spaced has an invalid byte at position 7;
< tollgate.yaml:3:28: tokens[1].token_file: empty is empty; write a token,
> tokens:\n  - { name: a, token_file: short, scopes: [check] }
< tollgate.yaml:2:28: tokens[0].token_file: short: the token has 15 bytes, fewer than 16; generate one with openssl
> tokens:\n  - { name: a, token_file: token, scopes: [check] }\n  - { name: b, token: s3cret-of-a-file, scopes: [check] }
< tollgate.yaml:3:23: tokens[1].token: another token has the same secret;
> tokens:\n  - { name: a, token_file: token, scopes: [check] }\n  - { name: b, token_sha256: DIGEST, scopes: [check] }
< tollgate.yaml:3:30: tokens[1].token_sha256: another token has the same secret;
";
    // `printf %s s3cret-of-a-file | sha256sum`
    let digest = "9a9bbd5f1973d33689de2285fe07c610dda635e10bbb8db679d4fec8a57eafc9";
    check_rows(&directory, Stage::CheckFiles, &rows.replace("DIGEST", digest), 5);
}

#[test]
fn errors_carry_the_location_in_the_referenced_file() {
    let directory = Folder::create();
    let csv = directory.write("bad.csv", "key,limits\nvip,1/month\n");
    let name = directory.join("tollgate.yaml").display().to_string();
    let yaml = "policies: { a: { limits: [1/s], overrides_file: bad.csv } }\n";
    let loaded = Layers::new().named_yaml(&name, yaml).read().unwrap();
    let errors = check_files(&loaded).unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!((error.field(), error.line()), (Some("policies.a.overrides_file"), Some(1)));
    let named = error.named().unwrap();
    assert_eq!((&named.file, named.line), (&csv, Some(2)));
    let report = errors.report();
    assert!(report.contains("tollgate.yaml:1:49\n  |\n1 | policies: "), "{report}");
    assert!(report.contains("^^^^^^^\n"), "{report}");
    fs::remove_file(csv).unwrap();
    // An environment variable takes the place of a line in the file.
    let layers = Layers::new().environment([
        ("TOLLGATE_STORE__URL".into(), "redis://h".into()),
        ("TOLLGATE_STORE__PASSWORD_FILE".into(), "/nowhere/password".into()),
    ]);
    let errors = check_files(&layers.read().unwrap()).unwrap_err().to_string();
    let expected =
        "TOLLGATE_STORE__PASSWORD_FILE: store.password_file: /nowhere/password: cannot be read";
    assert!(errors.starts_with(expected), "{errors}");
}

#[test]
fn errors_of_domain_files_name_the_file() {
    let directory = Folder::create();
    for name in ["empty", "full", "big"] {
        fs::create_dir(directory.join(name)).unwrap();
    }
    directory.write("a.yaml", domain("a", 1));
    directory.write("again.yaml", domain("a", 1));
    directory.write("more.yaml", domain("a", 1).replace("key: k", "key: l"));
    directory.write("bad.yaml", "domain: b\ndescriptors: [{ key: '' }]\n");
    directory.write("nothing.yaml", "");
    directory.write("full/b.yaml", domain("b", 1));
    directory.write("full/c.yml", "domain: ''\n");
    directory.write("big/d.yaml", format!("#{}\n", "x".repeat(16 << 20)));
    directory.write("latin.yaml", b"domain: caf\xe9\n");
    let rows = "
> envoy: { config: a.yaml }
> envoy: { config: [a.yaml, full/b.yaml] }
> envoy: { config: [a.yaml, more.yaml], merge_domains: true }
> envoy: { config: [a.yaml, again.yaml] }
< tollgate.yaml:1:27: envoy.config[1]: again.yaml: duplicate domain 'a' in config file
> envoy: { config: [a.yaml, bad.yaml] }
< tollgate.yaml:1:27: envoy.config[1]: bad.yaml:2: descriptor has empty key
> envoy: { config: [none, nothing.yaml, empty] }
< tollgate.yaml:1:19: envoy.config[0]: none: cannot be read:
< tollgate.yaml:1:25: envoy.config[1]: nothing.yaml: the file is empty;
< tollgate.yaml:1:39: envoy.config[2]: empty: no file with a name that ends
> envoy: { config: full }
< tollgate.yaml:1:18: envoy.config[0]: full/c.yml: config file cannot have empty
> envoy: { config: latin.yaml }
< tollgate.yaml:1:18: envoy.config[0]: latin.yaml: invalid UTF-8 at byte 11
> envoy: { config: big }
< tollgate.yaml:1:18: envoy.config[0]: big/d.yaml: the files are longer than
# With a control plane, the files are ignored.
> envoy: { config: none, xds: { server: 'localhost:1' } }
";
    check_rows(&directory, Stage::Read, rows, 10);
}

#[test]
fn only_yaml_files_of_a_directory_are_read() {
    let directory = Folder::create();
    let limits = directory.join("limits");
    fs::create_dir_all(limits.join("..2026/more.yaml")).unwrap();
    fs::create_dir(limits.join("directory.yaml")).unwrap();
    fs::write(limits.join("a.yaml"), domain("a", 1)).unwrap();
    symlink("..2026", limits.join("..data")).unwrap();
    for name in [".hidden.yaml", "notes.txt", "a.yaml~", "a.yaml.bak", "yaml", "..2026/b.yaml"] {
        fs::write(limits.join(name), "no: configuration").unwrap();
    }
    let pipe = Command::new("mkfifo").arg(limits.join("pipe.yaml")).status().unwrap();
    assert!(pipe.success());
    check(&directory, Stage::Read, "envoy: { config: limits }\n", &[]);
    symlink("nowhere", limits.join("dangling.yaml")).unwrap();
    let expected = "tollgate.yaml:1:18: envoy.config[0]: limits/dangling.yaml: cannot be read: ";
    check(&directory, Stage::Read, "envoy: { config: limits }\n", &[expected]);
}

#[test]
fn tls_files_for_the_control_plane_are_checked() {
    let authority = Authority::new();
    authority.write_pair(&authority.sign("edge"));
    authority.write_ca();
    authority.directory.write("empty.pem", "");
    authority.directory.write("encrypted.pem", ENCRYPTED_KEY);
    let rows = "
> envoy: { xds: { server: 'localhost:1', ca: ca.pem, cert: cert.pem, key: key.pem } }
> envoy: { xds: { server: 'localhost:1', ca: ca.pem, cert: cert.pem, key: encrypted.pem } }
< tollgate.yaml:1:73: envoy.xds.key: encrypted.pem: the key is encrypted, and
> envoy: { xds: { server: 'localhost:1', ca: none, cert: empty.pem, key: cert.pem } }
< tollgate.yaml:1:44: envoy.xds.ca: none: cannot be read:
< tollgate.yaml:1:56: envoy.xds.cert: empty.pem: no certificate found;
< tollgate.yaml:1:72: envoy.xds.key: cert.pem: no private key found
";
    check_rows(&authority.directory, Stage::CheckFiles, rows, 3);
}
