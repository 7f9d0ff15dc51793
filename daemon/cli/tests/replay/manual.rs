//! `docs/replay.md` and the README show the real output of the tool.
//!
//! The commands in `sh` blocks run in one directory; the `text` block after one is its output. Blocks below
//! `<!-- not run: reason -->` are skipped. `UPDATE=1` updates the output.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Directory, shell};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The end of a block.
const END: &str = "\n```\n";

/// Runs the commands of a page from a heading on. Returns the page with their output, and the number of
/// output blocks.
fn run(text: &str, from: &str) -> (String, usize) {
    let directory = Directory::new();
    let (head, mut rest) = text.split_at(text.find(from).unwrap());
    let (mut renewed, mut shown) = (head.to_owned(), 0);
    while let Some(at) = rest.find("```sh\n") {
        let (before, block) = rest.split_at(at);
        let (commands, after) = block["```sh\n".len()..].split_once(END).unwrap();
        renewed += &format!("{before}```sh\n{commands}{END}");
        rest = after;
        if before.ends_with("-->\n") {
            assert!(before.contains("<!-- not run: "), "{commands}");
            continue;
        }
        let printed = shell(commands, &directory);
        match after.strip_prefix("\n```text\n") {
            Some(output) => {
                let end = output.find("```\n").unwrap();
                renewed += &format!("\n```text\n{printed}```\n");
                rest = &output[end + "```\n".len()..];
                shown += 1;
            }
            None => assert_eq!(printed, "", "{commands}\nprints what the page does not show"),
        }
    }
    (renewed + rest, shown)
}

fn check(name: &str, from: &str, blocks: usize) {
    let path = page(name);
    let text = fs::read_to_string(&path).unwrap();
    let (renewed, shown) = run(&text, from);
    assert_eq!(shown, blocks, "{name}");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &renewed).unwrap();
        return;
    }
    for (ours, printed) in text.lines().zip(renewed.lines()) {
        assert_eq!(ours, printed, "{name} is out of date; UPDATE=1 writes it");
    }
    assert_eq!(text, renewed, "{name}");
}

#[test]
fn the_manual_shows_the_real_output() {
    check("docs/replay.md", "# Replay", 8);
}

#[test]
fn the_readme_shows_the_real_output() {
    let text = fs::read_to_string(page("README.md")).unwrap();
    let (start, end) = ("## Algorithms", "\n## ");
    let from = text.find(start).unwrap();
    let to = from + text[from + 1..].find(end).unwrap() + 1;
    let (renewed, shown) = run(&text[from..to], start);
    assert_eq!(shown, 1);
    if std::env::var_os("UPDATE").is_some() {
        let whole = [&text[..from], &renewed, &text[to..]].concat();
        return fs::write(page("README.md"), whole).unwrap();
    }
    assert_eq!(&text[from..to], renewed, "UPDATE=1 writes it");
}

/// The rights in the manual are sufficient for a replay.
#[test]
fn the_rights_in_the_manual_are_sufficient() {
    let text = fs::read_to_string(page("docs/replay.md")).unwrap();
    let line = text.lines().find(|line| line.starts_with("user replay on ")).unwrap();
    let rules = line.strip_prefix("user ").unwrap().replace(">PASSWORD", ">secret");
    let server = tollgate_testkit::Server::with(|x| x.user(&rules));
    let url = server.url_as("replay", "secret");
    let directory = Directory::new();
    let log = directory.file("log.csv", "time,key,verb\n1,a,check\n2,a,check\n3,a,reset\n");
    let log = log.to_str().unwrap();
    for limit in ["1/min", "1/min log", "2/min sliding; 3/min sliding by 10s"] {
        let (code, output, complaint) =
            crate::process::run([log, "--limit", limit, "--store", &url]);
        assert_eq!((code, &*complaint), (0, ""), "{limit}: {output}");
    }
}
