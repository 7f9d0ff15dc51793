//! `tollgate init`, whose output the pages of `docs/gateways` show.

use std::fs;

use tollgate_testkit::Folder;

use crate::process::{read_repository, run};
use crate::tokens::TOKENS;

const GATEWAYS: [(&str, &[&str]); 7] = [
    ("nginx", &["nginx.conf"]),
    ("caddy", &["Caddyfile"]),
    ("traefik", &["traefik.yaml", "dynamic.yaml"]),
    ("haproxy", &["haproxy.cfg", "tollgate.lua"]),
    ("envoy", &["envoy.yaml"]),
    ("envoy-ratelimit", &["envoy.yaml"]),
    ("envoy-rlqs", &["envoy.yaml"]),
];

/// Each gateway with all its files.
pub(crate) fn gateways() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    GATEWAYS.iter().map(|(name, files)| (*name, [&["tollgate.yaml"], *files].concat()))
}

/// Runs `init`. Returns the exit code, standard output and standard error.
pub(crate) fn init(arguments: &[&str]) -> (i32, String, String) {
    run([&["init"], arguments].concat())
}

/// The text of a gateway's page.
pub(crate) fn page(gateway: &str) -> String {
    read_repository(&format!("docs/gateways/{gateway}.md"))
}

#[test]
fn output_concatenates_all_files() {
    for (gateway, files) in gateways() {
        let (code, all, _) = init(&[gateway]);
        assert_eq!(code, 0);
        let mut rest = all.as_str();
        for file in files {
            let (code, alone, _) = init(&[gateway, "--file", file]);
            assert_eq!(code, 0);
            let (line, below) = rest.split_once('\n').unwrap();
            assert!(line.contains(&format!("= {file} =")), "{gateway}: {line}");
            rest = below.strip_prefix(&*alone).unwrap().strip_prefix('\n').unwrap();
        }
        assert_eq!(rest, "", "{gateway}");
    }
}

#[test]
fn addresses_replace_placeholders() {
    for (gateway, _) in gateways() {
        let addresses = ["--upstream", "[2001:db8::7]:3007", "--tollgate", "limits.test:8087"];
        let (code, text, error) =
            init(&[&[gateway], &addresses[..], &["--listen", "8007"]].concat());
        assert_eq!((code, &*error), (0, ""));
        for part in ["2001:db8::7", "3007", "limits.test", "8087", "8007"] {
            assert!(text.contains(part), "{gateway} lacks {part}: {text}");
        }
        for default in [
            "127.0.0.1:3000",
            "127.0.0.1:8080",
            ":8081",
            ":8000",
            "<upstream",
            "<tollgate",
            "<listen",
        ] {
            assert!(!text.contains(default), "{gateway} has {default}: {text}");
        }
    }
}

#[test]
fn invalid_arguments_are_rejected_with_a_hint() {
    let check = |arguments: &[&str], remedy: &str| {
        let (code, text, error) = init(arguments);
        assert_eq!((code, &*text), (2, ""), "{arguments:?}");
        assert!(error.contains(remedy), "{arguments:?}: {error}");
    };
    check(&["apache"], "nginx, caddy, traefik, haproxy, envoy, envoy-ratelimit, envoy-rlqs");
    check(&["nginx", "--upstream", "http://127.0.0.1:3000"], "such as 127.0.0.1:3000");
    check(&["nginx", "--tollgate", "limits;}"], "write HOST:PORT");
    check(&["nginx", "--tollgate", "a b:1"], "neither an address nor a name");
    check(&["nginx", "--listen", "0"], "--listen");
    check(&["nginx", "--file", "haproxy.cfg"], "it has tollgate.yaml, nginx.conf");
    check(&["nginx", "--write", "no-such-directory"], "create it, or name another");
    check(&["nginx", "--write", ".", "--file", "nginx.conf"], "cannot be used with");
}

#[test]
fn existing_files_are_never_overwritten() {
    for (gateway, files) in gateways() {
        let folder = Folder::create();
        let arguments = [gateway, "--write", folder.to_str().unwrap()];
        let (code, output, _) = init(&arguments);
        assert_eq!((code, output.lines().count()), (0, files.len()), "{output}");
        for file in &files {
            let written = fs::read_to_string(folder.join(file)).unwrap();
            assert_eq!(written, init(&[gateway, "--file", file]).1);
        }
        // One existing file prevents all writes.
        fs::remove_file(folder.join("tollgate.yaml")).unwrap();
        let (code, _, error) = init(&arguments);
        assert_eq!(code, 2);
        assert!(error.contains("already exists; move it"), "{error}");
        assert!(!folder.join("tollgate.yaml").exists());
    }
}

#[test]
fn pages_show_the_files_that_init_prints() {
    for (gateway, files) in gateways() {
        let page = page(gateway);
        for file in files {
            let (_, text, _) = init(&[gateway, "--file", file]);
            let shown = page
                .split("```")
                .any(|block| block.split_once('\n').is_some_and(|(_, shown)| shown == text));
            assert!(shown, "docs/gateways/{gateway}.md does not show {file} as init prints it");
        }
    }
}

/// The tests enable tokens with the command of the page.
#[test]
fn pages_show_how_to_enable_tokens() {
    let (from, to) = TOKENS;
    let line = format!("\nsed -i 's/{from}/{to}/' tollgate.yaml ");
    for (gateway, _) in gateways() {
        assert!(page(gateway).contains(&line), "docs/gateways/{gateway}.md lacks{line}");
    }
}
