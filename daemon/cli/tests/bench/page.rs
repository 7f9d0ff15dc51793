//! `docs/bench.md` matches the tool.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tool::bench;

fn page() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench.md");
    std::fs::read_to_string(file).unwrap()
}

/// All long flags in a text.
fn flags(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
    let words = text.split(|c: char| !is_word(c));
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 2);
    flags.map(|flag| flag.trim_end_matches('-').to_owned()).collect()
}

#[test]
fn the_page_documents_every_flag_and_no_other() {
    let (_, help, _) = bench("--help");
    let (known, page) = (flags(&help), page());
    let commands = page.lines().filter(|line| line.starts_with("tollgate bench"));
    let shown: String = commands.collect::<Vec<_>>().join("\n");
    let unknown: Vec<_> = flags(&shown).difference(&known).cloned().collect();
    assert_eq!(unknown, Vec::<String>::new());
    let undocumented: Vec<_> =
        known.iter().filter(|flag| *flag != "--help" && !flags(&page).contains(*flag)).collect();
    assert_eq!(undocumented, Vec::<&String>::new());
}

/// Only the commands that need no server.
#[test]
fn the_commands_of_the_page_run() {
    let page = page();
    let commands = page.lines().filter_map(|line| line.strip_prefix("tollgate bench "));
    let commands = commands.map(|command| command.split(" #").next().unwrap_or(command).trim());
    let in_process: Vec<&str> = commands.filter(|command| command.starts_with("memory")).collect();
    assert!(!in_process.is_empty());
    for words in in_process {
        let (code, output, error) = bench(&format!("{words} -n 1000"));
        assert_eq!(code, 0, "{words}: {output}{error}");
    }
}
