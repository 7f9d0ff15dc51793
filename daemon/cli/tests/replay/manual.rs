//! `docs/replay.md` and the README show the real output of the tool.
//!
//! The commands in `sh` blocks run in one folder; the `text` block after one is its output. Blocks
//! below `<!-- not run: reason -->` are skipped. `UPDATE=1` updates the output.

use tollgate_testkit::{Folder, Server, assert_up_to_date};

use crate::process::read_repository;
use crate::tool::{run, shell};

/// The end of a block.
const END: &str = "\n```\n";

/// Runs the commands of a text. Returns the text with their output, and the number of output
/// blocks.
fn update(text: &str) -> (String, usize) {
    let folder = Folder::create();
    let (mut updated, mut rest, mut shown) = (String::new(), text, 0);
    while let Some(at) = rest.find("```sh\n") {
        let (before, block) = rest.split_at(at);
        let (commands, after) = block["```sh\n".len()..].split_once(END).unwrap();
        updated += &format!("{before}```sh\n{commands}{END}");
        rest = after;
        if before.ends_with("-->\n") {
            assert!(before.contains("<!-- not run: "), "{commands}");
            continue;
        }
        let printed = shell(commands, &folder);
        match after.strip_prefix("\n```text\n") {
            Some(output) => {
                let end = output.find("```\n").unwrap();
                updated += &format!("\n```text\n{printed}```\n");
                rest = &output[end + "```\n".len()..];
                shown += 1;
            }
            None => assert_eq!(printed, "", "{commands}\nprints what the page does not show"),
        }
    }
    (updated + rest, shown)
}

/// Checks the part of a page from a heading to a text or the end.
fn check(page: &str, from: &str, to: Option<&str>, blocks: usize) {
    let text = read_repository(page);
    let begin = text.find(from).unwrap();
    let end = to.map_or(text.len(), |to| begin + text[begin..].find(to).unwrap());
    let (updated, shown) = update(&text[begin..end]);
    assert_eq!(shown, blocks, "{page}");
    let updated = [&text[..begin], &updated, &text[end..]].concat();
    assert_up_to_date(page, &updated, "tollgate-cli", "replay");
}

#[test]
fn the_manual_shows_the_real_output() {
    check("docs/replay.md", "# Replay", None, 8);
}

#[test]
fn the_readme_shows_the_real_output() {
    check("README.md", "## Algorithms", Some("\n## "), 1);
}

/// The rights in the manual are sufficient for a replay.
#[test]
fn the_rights_in_the_manual_are_sufficient() {
    let text = read_repository("docs/replay.md");
    let line = text.lines().find(|line| line.starts_with("user replay on ")).unwrap();
    let rules = line.strip_prefix("user ").unwrap().replace(">PASSWORD", ">secret");
    let server = Server::with(|config| config.user(&rules));
    let url = server.url_as("replay", "secret");
    let folder = Folder::create();
    let log = folder.write("log.csv", "time,key,verb\n1,a,check\n2,a,check\n3,a,reset\n");
    let log = log.to_str().unwrap();
    for limit in ["1/min", "1/min log", "2/min sliding; 3/min sliding by 10s"] {
        let (code, output, error) = run([log, "--limit", limit, "--store", &url]);
        assert_eq!((code, &*error), (0, ""), "{limit}: {output}");
    }
}
