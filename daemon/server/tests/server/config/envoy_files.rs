//! envoyproxy/ratelimit configuration files and directories: which are read, and their errors.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use tollgate_server::{Layers, check_files};

use crate::support::certificates::Authority;
use crate::support::{TempDir, assert_lines_start_with};

/// A configuration of one domain with one limit.
fn domain(name: &str) -> String {
    format!(
        "domain: {name}\ndescriptors: [{{ key: k, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}]\n"
    )
}

/// Compares the errors of `envoy` settings with the expected beginnings of lines.
fn check(directory: &TempDir, envoy: &str, expected: &[&str]) {
    let name = directory.config().display().to_string();
    let result = Layers::new().named_yaml(&name, &format!("envoy: {{ {envoy} }}\n")).read();
    let errors = result.map_or_else(|errors| errors.to_string(), |_| String::new());
    assert_lines_start_with(&directory.strip_from(&errors), expected);
}

#[test]
fn errors_name_the_file() {
    let directory = TempDir::new();
    for name in ["empty", "full", "big"] {
        fs::create_dir(directory.join(name)).unwrap();
    }
    directory.write("a.yaml", &domain("a"));
    directory.write("again.yaml", &domain("a"));
    directory.write("more.yaml", &domain("a").replace("key: k", "key: l"));
    directory.write("bad.yaml", "domain: b\ndescriptors: [{ key: '' }]\n");
    directory.write("nothing.yaml", "");
    directory.write("full/b.yaml", &domain("b"));
    directory.write("full/c.yml", "domain: ''\n");
    directory.write("big/d.yaml", &format!("#{}\n", "x".repeat(16 << 20)));
    fs::write(directory.join("latin.yaml"), b"domain: caf\xe9\n").unwrap();
    for (envoy, expected) in [
        ("config: a.yaml", &[][..]),
        ("config: [a.yaml, full/b.yaml]", &[]),
        ("config: [a.yaml, more.yaml], merge_domains: true", &[]),
        (
            "config: [a.yaml, again.yaml]",
            &[
                "tollgate.yaml:1:27: envoy.config[1]: again.yaml: duplicate domain 'a' in config file",
            ],
        ),
        (
            "config: [a.yaml, bad.yaml]",
            &["tollgate.yaml:1:27: envoy.config[1]: bad.yaml:2: descriptor has empty key"],
        ),
        (
            "config: [none, nothing.yaml, empty]",
            &[
                "tollgate.yaml:1:19: envoy.config[0]: none: cannot be read: ",
                "tollgate.yaml:1:25: envoy.config[1]: nothing.yaml: the file is empty; ",
                "tollgate.yaml:1:39: envoy.config[2]: empty: no file with a name that ends",
            ],
        ),
        (
            "config: full",
            &["tollgate.yaml:1:18: envoy.config[0]: full/c.yml: config file cannot have empty"],
        ),
        (
            "config: latin.yaml",
            &["tollgate.yaml:1:18: envoy.config[0]: latin.yaml: invalid UTF-8 at byte 11"],
        ),
        (
            "config: big",
            &["tollgate.yaml:1:18: envoy.config[0]: big/d.yaml: the files are longer than"],
        ),
        // With a control plane, the files are ignored.
        ("config: none, xds: { server: 'localhost:1' }", &[]),
    ] {
        check(&directory, envoy, expected);
    }
}

#[test]
fn only_yaml_files_of_a_directory_are_read() {
    let directory = TempDir::new();
    let limits = directory.join("limits");
    fs::create_dir_all(limits.join("..2026/more.yaml")).unwrap();
    fs::create_dir(limits.join("directory.yaml")).unwrap();
    fs::write(limits.join("a.yaml"), domain("a")).unwrap();
    symlink("..2026", limits.join("..data")).unwrap();
    for name in [".hidden.yaml", "notes.txt", "a.yaml~", "a.yaml.bak", "yaml", "..2026/b.yaml"] {
        fs::write(limits.join(name), "no: configuration").unwrap();
    }
    let pipe = Command::new("mkfifo").arg(limits.join("pipe.yaml")).status().unwrap();
    assert!(pipe.success());
    check(&directory, "config: limits", &[]);
    symlink("nowhere", limits.join("dangling.yaml")).unwrap();
    let expected = "tollgate.yaml:1:18: envoy.config[0]: limits/dangling.yaml: cannot be read: ";
    check(&directory, "config: limits", &[expected]);
}

#[test]
fn tls_files_for_the_control_plane_are_checked() {
    let authority = Authority::new();
    authority.write_pair(&authority.sign("edge"));
    authority.write_ca();
    authority.directory.write("empty.pem", "");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    authority.directory.write("encrypted.pem", encrypted);
    for (files, expected) in [
        ("ca: ca.pem, cert: cert.pem, key: key.pem", &[][..]),
        (
            "ca: ca.pem, cert: cert.pem, key: encrypted.pem",
            &["envoy.xds.key: encrypted.pem: the key is encrypted, and "],
        ),
        (
            "ca: none, cert: empty.pem, key: cert.pem",
            &[
                "envoy.xds.ca: none: cannot be read: ",
                "envoy.xds.cert: empty.pem: no certificate found; ",
                "envoy.xds.key: cert.pem: no private key found ",
            ],
        ),
    ] {
        let name = authority.directory.config().display().to_string();
        let yaml = format!("envoy: {{ xds: {{ server: 'localhost:1', {files} }} }}\n");
        let layered = Layers::new().named_yaml(&name, &yaml).read().unwrap();
        let errors = check_files(&layered).err().map_or(String::new(), |error| error.to_string());
        let errors = authority.directory.strip_from(&errors);
        assert_eq!(errors.lines().count(), expected.len(), "{errors}");
        for (line, expected) in errors.lines().zip(expected) {
            assert!(line.contains(expected), "{line}\n{expected}");
        }
    }
}
