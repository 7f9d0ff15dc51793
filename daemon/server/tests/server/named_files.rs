//! The files that a configuration names, looked at before it is used.

use std::fs;

use tollgate_server::{Layers, LoadedConfig, check_files};

use crate::certificates::Authority;

/// Reads a configuration beside the authority's files.
fn read(authority: &Authority, yaml: &str) -> LoadedConfig {
    let name = authority.directory.join("tollgate.yaml").display().to_string();
    Layers::new().named_yaml(&name, yaml).read().unwrap()
}

/// Holds what is said of files, a line for each mistake, against the beginnings of its lines.
fn check(authority: &Authority, yaml: &str, expected: &[&str]) {
    let all = match check_files(&read(authority, yaml)) {
        Ok(()) => String::new(),
        Err(errors) => errors.to_string(),
    };
    let all = all.replace(&format!("{}/", authority.directory.display()), "");
    assert_eq!(all.lines().count(), expected.len(), "{yaml}\n{all}");
    for (line, expected) in all.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn files_of_overrides_and_of_the_password_are_read() {
    let authority = Authority::new();
    authority.write("good.csv", "key,limits\nvip,100/s\n");
    authority.write("bad.csv", "key,limits\nvip,1/month\n10.0.0.1/8,1/s\n");
    authority.write("password", "s3cret\n");
    authority.write("empty", "\n");
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
        check(&authority, &yaml, expected);
    }
}

#[test]
fn files_of_tls_are_read_and_held_against_each_other() {
    let authority = Authority::new();
    let (own, other) = (authority.sign("own"), authority.sign("other"));
    authority.write_pair(&own);
    authority.write("other.pem", &other.key);
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
        check(&authority, &format!("listen: {{ tls: {{ {files} }} }}\n"), expected);
    }
}

#[test]
fn files_of_tokens_are_read() {
    let authority = Authority::new();
    authority.write("token", "s3cret-of-a-file");
    authority.write("spaced", "s3cret of a file");
    authority.write("empty", "");
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
        check(&authority, &yaml, expected);
    }
}

#[test]
fn the_place_in_a_named_file_is_told_by_itself() {
    let authority = Authority::new();
    let csv = authority.write("bad.csv", "key,limits\nvip,1/month\n");
    let yaml = "policies: { a: { limits: [1/s], overrides_file: bad.csv } }\n";
    let errors = check_files(&read(&authority, yaml)).unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!((error.field(), error.line()), (Some("policies.a.overrides_file"), Some(1)));
    let named = error.named().unwrap();
    assert_eq!((&named.file, named.line), (&csv, Some(2)));
    let report = errors.report();
    assert!(report.contains("tollgate.yaml:1:49\n  |\n1 | policies: "), "{report}");
    assert!(report.contains("^^^^^^^\n"), "{report}");
    fs::remove_file(csv).unwrap();
    // A variable stands in for a line of the file.
    let layers = Layers::new().environment([
        ("TOLLGATE_STORE__URL".into(), "redis://h".into()),
        ("TOLLGATE_STORE__PASSWORD_FILE".into(), "/nowhere/password".into()),
    ]);
    let errors = check_files(&layers.read().unwrap()).unwrap_err().to_string();
    let expected =
        "TOLLGATE_STORE__PASSWORD_FILE: store.password_file: /nowhere/password: cannot be read";
    assert!(errors.starts_with(expected), "{errors}");
}
