//! The files that a configuration names, looked at before it is used.

use std::fs;

use tollgate_server::{ConfigErrors, Layered, Layers};

use crate::certificates::Authority;

/// Reads a configuration beside the authority's files.
fn read(authority: &Authority, yaml: &str) -> Layered {
    let name = authority.directory.join("tollgate.yaml").display().to_string();
    Layers::new().named_yaml(&name, yaml).read().unwrap()
}

/// What is said, without the directory.
fn said(authority: &Authority, errors: &ConfigErrors) -> String {
    errors.to_string().replace(&format!("{}/", authority.directory.display()), "")
}

#[test]
fn each_mistake_names_the_field_and_the_file() {
    let authority = Authority::new();
    let (own, other) = (authority.sign("own"), authority.sign("other"));
    for (name, text) in [
        ("good.csv", "key,limits\nvip,100/s\n"),
        ("bad.csv", "key,limits\nvip,1/month\n10.0.0.1/8,1/s\n"),
        ("token", "s3cret-of-a-file"),
        ("spaced", "s3cret of a file"),
        ("empty", ""),
        ("password", "s3cret\n"),
        ("cert.pem", &own.cert),
        ("key.pem", &own.key),
        ("other.pem", &other.key),
    ] {
        authority.write(name, text);
    }
    let overrides =
        |name: &str| format!("policies:\n  a.b: {{ limits: [1/s], overrides_file: {name} }}\n");
    let tls = |files: &str| format!("listen: {{ tls: {{ {files} }} }}\n");
    let tokens = |secrets: [&str; 2]| {
        let token = |name, secret| format!("  - {{ name: {name}, {secret}, scopes: [check] }}\n");
        format!("tokens:\n{}{}", token("a", secrets[0]), token("b", secrets[1]))
    };
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
            &["tollgate.yaml:2:41: policies.a.b.overrides_file: none.csv: it cannot be read: "],
        ),
        (tls("cert: cert.pem, key: key.pem"), &[]),
        (
            tls("cert: none, key: none, client_ca: none"),
            &[
                "tollgate.yaml:1:24: listen.tls.cert: none: it cannot be read: ",
                "tollgate.yaml:1:35: listen.tls.key: none: it cannot be read: ",
                "tollgate.yaml:1:52: listen.tls.client_ca: none: it cannot be read: ",
            ],
        ),
        (
            tls("cert: cert.pem, key: other.pem"),
            &["tollgate.yaml:1:39: listen.tls.key: other.pem: it does not fit the certificate, "],
        ),
        (tokens(["token_file: token", "token: else"]), &[]),
        (
            tokens(["token_file: spaced", "token_file: empty"]),
            &[
                "tollgate.yaml:2:28: tokens[0].token_file: spaced has something else at byte 7; ",
                "tollgate.yaml:3:28: tokens[1].token_file: empty is empty; write a token, ",
            ],
        ),
        (
            tokens(["token_file: token", "token: s3cret-of-a-file"]),
            &["tollgate.yaml:3:23: tokens[1].token: another token has the same secret; "],
        ),
        (store("password"), &[]),
        (
            store("empty"),
            &["tollgate.yaml:1:41: store.password_file: empty: it is empty; write the password, "],
        ),
        (store("none"), &["tollgate.yaml:1:41: store.password_file: none: it cannot be read: "]),
        (
            format!("{}{}", store("none"), overrides("none.csv")),
            &[
                "tollgate.yaml:1:41: store.password_file: ",
                "tollgate.yaml:3:41: policies.a.b.overrides_file: ",
            ],
        ),
    ] {
        let all = match read(&authority, &yaml).check_files() {
            Ok(()) => String::new(),
            Err(errors) => said(&authority, &errors),
        };
        assert_eq!(all.lines().count(), expected.len(), "{yaml}\n{all}");
        for (line, expected) in all.lines().zip(expected) {
            assert!(line.starts_with(expected), "{line}\n{expected}");
        }
        assert!(!all.contains("s3cret"), "{all}");
    }
}

#[test]
fn the_place_in_a_named_file_is_told_by_itself() {
    let authority = Authority::new();
    let csv = authority.write("bad.csv", "key,limits\nvip,1/month\n");
    let yaml = "policies: { a: { limits: [1/s], overrides_file: bad.csv } }\n";
    let errors = read(&authority, yaml).check_files().unwrap_err();
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
    let errors = layers.read().unwrap().check_files().unwrap_err().to_string();
    let expected =
        "TOLLGATE_STORE__PASSWORD_FILE: store.password_file: /nowhere/password: it cannot be read";
    assert!(errors.starts_with(expected), "{errors}");
}
