//! Invalid arguments are rejected, and `docs/bench.md` matches the arguments.

use std::collections::BTreeSet;

use crate::process::read_repository;
use crate::tool::bench;

#[test]
fn invalid_arguments_are_rejected_with_an_alternative() {
    let check = |words: &str, parts: &[&str]| {
        let (code, _, error) = bench(words);
        assert_eq!(code, 2, "{words}: {error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} of {words}: {error}"));
    };
    check("ftp://host", &["\"ftp://host\"", "redis://HOST:PORT"]);
    check("https://host", &["TLS"]);
    check("http://host --host other", &["--host", "once"]);
    check("memory --limit 10/parsec", &["--limit", "10/parsec"]);
    check("memory --policy api", &["--policy \"api\"", "--limit"]);
    check("http --policy 10/s", &["--policy \"10/s\"", "--limit"]);
    check("grpc", &["--policy"]);
    check("http --threshold 5", &["--threshold 5", "redis://HOST:PORT"]);
    check("http --command throttle", &["--command throttle", "redis://"]);
    check("http --pipeline 4", &["--pipeline 4", "--concurrency"]);
    check("redis --command throttle --limit \"10/s log\"", &["\"10/s log\"", "token bucket"]);
    check("redis --command throttle --limit 10/500ms", &["10/500ms", "whole seconds"]);
    check("redis --threshold 5 --cost 2", &["--cost 2"]);
    check("redis --threshold 5 --limit 10/s", &["--threshold", "--limit"]);
    check("memory --zipf 0", &["--zipf", "above 0"]);
    check("memory --keys 0", &["--keys", "0"]);
    check("memory --rate 0", &["--rate"]);
    check("memory --duration 2d", &["--duration", "at most 1d"]);
    check("memory --duration 5", &["--duration", "5"]);
    check("memory --timeout 2h", &["--timeout", "at most 1h"]);
    check("memory --against 5/s", &["--verify"]);
    check("memory --concurrency 1000", &["--concurrency 1000", "256"]);
    check("memory --cost 18446744073709551615", &["--cost 18446744073709551615", "at most"]);
}

fn page() -> String {
    read_repository("docs/bench.md")
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
