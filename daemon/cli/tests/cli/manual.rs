//! Completions and the manual, which the command line's own definition makes.

use std::process::{Command, Stdio};
use std::{fs, io::Write};

use tollgate_testkit::Folder;

use crate::process::run;

#[test]
fn every_shell_gets_its_completions() {
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

/// Bash itself completes: what stands there first is what it is given.
#[test]
fn bash_completes() {
    let (_, script, _) = run(["completions", "bash"]);
    let mut bash =
        Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let ask = r#"
COMP_WORDS=(tollgate se) COMP_CWORD=1 COMP_LINE="tollgate se"
_tollgate tollgate se tollgate
echo "${COMPREPLY[@]}"
"#;
    bash.stdin.take().unwrap().write_all(format!("{script}{ask}").as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "serve\n");
}

#[test]
fn there_is_a_page_for_each_command() {
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
