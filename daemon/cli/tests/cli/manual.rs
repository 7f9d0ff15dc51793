//! Completions and manual pages, which derive from the definition of the command line.

use std::fs;
use std::process::Command;

use tollgate_testkit::Folder;

use crate::process::{output, run};

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = run(["completions", shell]);
        assert_eq!(code, 0, "{shell}");
        for word in ["serve", "check", "config", "init", "store"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    let (code, _, error) = run(["completions", "csh"]);
    assert!(code == 2 && error.contains("bash"), "{error}");
}

#[test]
fn bash_completes_a_command() {
    let (_, script, _) = run(["completions", "bash"]);
    let completion = r#"
COMP_WORDS=(tollgate se) COMP_CWORD=1 COMP_LINE="tollgate se"
_tollgate tollgate se tollgate
echo "${COMPREPLY[@]}"
"#;
    let (_, printed, _) = output(&mut Command::new("bash"), (script + completion).as_bytes());
    assert_eq!(printed, "serve\n");
}

#[test]
fn each_command_has_a_page() {
    let (code, page, _) = run(["man"]);
    assert!(code == 0 && page.contains(".TH tollgate 1"), "{page}");
    let directory = Folder::create();
    let (code, printed, _) = run(["man", "--write", directory.to_str().unwrap()]);
    assert_eq!((code, &*printed), (0, ""));
    for name in
        ["tollgate", "tollgate-serve", "tollgate-check", "tollgate-config-check", "tollgate-init"]
    {
        let page = fs::read_to_string(directory.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let missing = directory.join("missing");
    let (code, _, error) = run(["man", "--write", missing.to_str().unwrap()]);
    assert!(code == 2 && error.contains("--write"), "{error}");
}
