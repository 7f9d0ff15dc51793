//! Checks of the files that a configuration references.

use std::fs;

use tollgate_server::{Layers, LoadedConfig, check_files};

use crate::support::certificates::Authority;
use crate::support::{TempDir, assert_lines_start_with};

/// Reads a configuration in a directory.
fn read(directory: &TempDir, yaml: &str) -> LoadedConfig {
    Layers::new().named_yaml(&directory.config().display().to_string(), yaml).read().unwrap()
}

/// Compares the errors, one a line, with the expected beginnings of lines.
fn check(directory: &TempDir, yaml: &str, expected: &[&str]) {
    let errors =
        check_files(&read(directory, yaml)).map_or_else(|e| e.to_string(), |()| String::new());
    assert_lines_start_with(&directory.strip_from(&errors), expected);
    assert!(!errors.contains("s3cret"), "{errors}");
}

#[test]
fn override_and_password_files_are_checked() {
    let directory = TempDir::new();
    directory.write("good.csv", "key,limits\nvip,100/s\n");
    directory.write("bad.csv", "key,limits\nvip,1/month\n10.0.0.1/8,1/s\n");
    directory.write("password", "s3cret\n");
    directory.write("empty", "\n");
    let overrides =
        |name: &str| format!("policies:\n  a.b: {{ limits: [1/s], overrides_file: {name} }}\n");
    let store = |file: &str| format!("store: {{ url: redis://h, password_file: {file} }}\n");
    for (yaml, expected) in [
        (overrides("good.csv"), &[][..]),
        (
            overrides("bad.csv"),
            &[
                "tollgate.yaml:2:41: policies.a.b.overrides_file: bad.csv:2: limits: ",
                "tollgate.yaml:2:41: policies.a.b.overrides_file: bad.csv:3: key: \"10.0.0.1/8\": ",
            ],
        ),
        (
            overrides("none.csv"),
            &["tollgate.yaml:2:41: policies.a.b.overrides_file: none.csv: cannot be read: "],
        ),
        (store("password"), &[]),
        (
            store("empty"),
            &[
                "tollgate.yaml:1:41: store.password_file: empty: the file is empty; write the password ",
            ],
        ),
        (store("none"), &["tollgate.yaml:1:41: store.password_file: none: cannot be read: "]),
        (
            format!("{}{}", store("none"), overrides("none.csv")),
            &[
                "tollgate.yaml:1:41: store.password_file: ",
                "tollgate.yaml:3:41: policies.a.b.overrides_file: ",
            ],
        ),
    ] {
        check(&directory, &yaml, expected);
    }
}

#[test]
fn tls_files_are_checked_against_each_other() {
    let authority = Authority::new();
    let (own, other) = (authority.sign("own"), authority.sign("other"));
    authority.write_pair(&own);
    authority.directory.write("other.pem", &other.key);
    for (files, expected) in [
        ("cert: cert.pem, key: key.pem", &[][..]),
        (
            "cert: none, key: none, client_ca: none",
            &[
                "tollgate.yaml:1:24: listen.tls.cert: none: cannot be read: ",
                "tollgate.yaml:1:35: listen.tls.key: none: cannot be read: ",
                "tollgate.yaml:1:52: listen.tls.client_ca: none: cannot be read: ",
            ],
        ),
        (
            "cert: cert.pem, key: other.pem",
            &[
                "tollgate.yaml:1:39: listen.tls.key: other.pem: it does not match the certificate in ",
            ],
        ),
    ] {
        check(&authority.directory, &format!("listen: {{ tls: {{ {files} }} }}\n"), expected);
    }
}

#[test]
fn token_files_are_checked() {
    let directory = TempDir::new();
    directory.write("token", "s3cret-of-a-file");
    directory.write("spaced", "s3cret of a file");
    directory.write("empty", "");
    for (first, second, expected) in [
        ("token_file: token", "token: else", &[][..]),
        (
            "token_file: spaced",
            "token_file: empty",
            &[
                "tollgate.yaml:2:28: tokens[0].token_file: spaced has an invalid byte at position 7; ",
                "tollgate.yaml:3:28: tokens[1].token_file: empty is empty; write a token, ",
            ],
        ),
        (
            "token_file: token",
            "token: s3cret-of-a-file",
            &["tollgate.yaml:3:23: tokens[1].token: another token has the same secret; "],
        ),
    ] {
        let token = |name, secret| format!("  - {{ name: {name}, {secret}, scopes: [check] }}\n");
        let yaml = format!("tokens:\n{}{}", token("a", first), token("b", second));
        check(&directory, &yaml, expected);
    }
}

#[test]
fn errors_carry_the_location_in_the_referenced_file() {
    let directory = TempDir::new();
    let csv = directory.write("bad.csv", "key,limits\nvip,1/month\n");
    let yaml = "policies: { a: { limits: [1/s], overrides_file: bad.csv } }\n";
    let errors = check_files(&read(&directory, yaml)).unwrap_err();
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
