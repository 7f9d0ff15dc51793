//! Files of envoyproxy/ratelimit, and directories of them: what is read, and what is said of what
//! cannot be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tollgate_server::{Layers, check_files};

use crate::certificates::Authority;

/// A file of one domain with one limit.
fn domain(name: &str) -> String {
    format!(
        "domain: {name}\ndescriptors: [{{ key: k, rate_limit: {{ unit: day, requests_per_unit: 1 }} }}]\n"
    )
}

/// Holds what is said of `envoy` against the beginnings of its lines.
fn check(folder: &Path, envoy: &str, expected: &[&str]) {
    let name = folder.join("tollgate.yaml").display().to_string();
    let read = Layers::new().named_yaml(&name, &format!("envoy: {{ {envoy} }}\n")).read();
    let all = read.map_or_else(|x| x.to_string(), |_| String::new());
    let all = all.replace(&format!("{}/", folder.display()), "");
    assert_eq!(all.lines().count(), expected.len(), "{envoy}\n{all}");
    for (line, expected) in all.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
}

#[test]
fn what_cannot_be_used_is_told_with_its_file() {
    let folder = Authority::new();
    let directory = |name: &str| fs::create_dir(folder.directory.join(name)).unwrap();
    ["empty", "full", "big"].into_iter().for_each(directory);
    folder.write("a.yaml", &domain("a"));
    folder.write("again.yaml", &domain("a"));
    folder.write("more.yaml", &domain("a").replace("key: k", "key: l"));
    folder.write("bad.yaml", "domain: b\ndescriptors: [{ key: '' }]\n");
    folder.write("nothing.yaml", "");
    folder.write("full/b.yaml", &domain("b"));
    folder.write("full/c.yml", "domain: ''\n");
    folder.write("big/d.yaml", &format!("#{}\n", "x".repeat(16 << 20)));
    fs::write(folder.directory.join("latin.yaml"), b"domain: caf\xe9\n").unwrap();
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
                "tollgate.yaml:1:39: envoy.config[2]: empty: there is no file in it whose name ends",
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
            &["tollgate.yaml:1:18: envoy.config[0]: big/d.yaml: with it there are more"],
        ),
        // What a control plane says is all that holds.
        ("config: none, xds: { server: 'localhost:1' }", &[]),
    ] {
        check(&folder.directory, envoy, expected);
    }
}

#[test]
fn of_a_directory_only_files_of_the_right_name_are_read() {
    let folder = Authority::new();
    let limits = folder.directory.join("limits");
    fs::create_dir_all(limits.join("..2026/more.yaml")).unwrap();
    fs::create_dir(limits.join("directory.yaml")).unwrap();
    fs::write(limits.join("a.yaml"), domain("a")).unwrap();
    symlink("..2026", limits.join("..data")).unwrap();
    for name in [".hidden.yaml", "notes.txt", "a.yaml~", "a.yaml.bak", "yaml", "..2026/b.yaml"] {
        fs::write(limits.join(name), "no: configuration").unwrap();
    }
    let pipe = Command::new("mkfifo").arg(limits.join("pipe.yaml")).status().unwrap();
    assert!(pipe.success());
    check(&folder.directory, "config: limits", &[]);
    symlink("nowhere", limits.join("dangling.yaml")).unwrap();
    let expected = "tollgate.yaml:1:18: envoy.config[0]: limits/dangling.yaml: cannot be read: ";
    check(&folder.directory, "config: limits", &[expected]);
}

#[test]
fn the_files_of_tls_with_a_control_plane_are_tried() {
    let authority = Authority::new();
    authority.write_pair(&authority.sign("edge"));
    authority.write("ca.pem", &authority.pem);
    authority.write("empty.pem", "");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    authority.write("encrypted.pem", encrypted);
    for (files, expected) in [
        ("ca: ca.pem, cert: cert.pem, key: key.pem", &[][..]),
        (
            "ca: ca.pem, cert: cert.pem, key: encrypted.pem",
            &["envoy.xds.key: encrypted.pem: it is encrypted, and "],
        ),
        (
            "ca: none, cert: empty.pem, key: cert.pem",
            &[
                "envoy.xds.ca: none: cannot be read: ",
                "envoy.xds.cert: empty.pem: there is no certificate in it; ",
                "envoy.xds.key: cert.pem: no private key found ",
            ],
        ),
    ] {
        let name = authority.directory.join("tollgate.yaml").display().to_string();
        let yaml = format!("envoy: {{ xds: {{ server: 'localhost:1', {files} }} }}\n");
        let read = Layers::new().named_yaml(&name, &yaml).read().unwrap();
        let said = check_files(&read).err().map_or(String::new(), |error| error.to_string());
        let said = said.replace(&format!("{}/", authority.directory.display()), "");
        assert_eq!(said.lines().count(), expected.len(), "{said}");
        for (line, expected) in said.lines().zip(expected) {
            assert!(line.contains(expected), "{line}\n{expected}");
        }
    }
}
