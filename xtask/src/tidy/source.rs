//! The files of the repository, and Rust source with its comments and literals blanked out.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;

use crate::repository;

/// Every text file that a commit of everything would hold.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// The names of all files, those that are not text too.
    pub(super) names: Vec<String>,
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    /// Of Rust: the text with comments and the insides of literals as spaces. Of others: nothing.
    pub(super) code: String,
    /// The parts of the code that only tests compile.
    tests: Vec<Range<usize>>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let names = repository::files(root)?;
        let read = |name: &String| {
            let text = String::from_utf8(fs::read(root.join(name)).ok()?).ok()?;
            Some(File::new(name, text))
        };
        Ok(Self { files: names.iter().filter_map(read).collect(), names })
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let names = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let files = files.iter().map(|(path, text)| File::new(path, (*text).to_owned()));
        Self { files: files.collect(), names }
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let mut file = Self { path: path.to_owned(), text, code: String::new(), tests: Vec::new() };
        if file.is_rust() {
            file.code = blanked(&file.text);
            file.tests = tests(&file.path, &file.code);
        }
        file
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The number, from 1, of the line that `offset` lies in.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
    }

    /// Whether only tests compile what stands at `offset`.
    pub(super) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }
}

fn tests(path: &str, code: &str) -> Vec<Range<usize>> {
    let whole = path.contains("tests/") || path.contains("benches/") || path.ends_with("tests.rs");
    if whole {
        return std::iter::once(0..code.len()).collect();
    }
    let attributes = ["#[cfg(test)]", "#[cfg(all(test"];
    let starts = attributes.iter().flat_map(|attribute| code.match_indices(attribute));
    starts.map(|(start, _)| start..end_of_item(code, start)).collect()
}

/// Where the item that begins at `start` ends: behind its block, or behind its semicolon if that
/// comes first.
pub(super) fn end_of_item(code: &str, start: usize) -> usize {
    let mut depth = Depth::default();
    for (at, byte) in code.bytes().enumerate().skip(start) {
        let was_open = depth.braces > 0;
        depth.read(byte);
        let block_ended = was_open && depth.braces == 0;
        if depth.others == 0 && (block_ended || (byte == b';' && depth.braces == 0)) {
            return at + 1;
        }
    }
    code.len()
}

/// How many brackets are open. Code is balanced, or it would not compile; saturating keeps a
/// fragment from a panic.
#[derive(Debug, Default)]
struct Depth {
    braces: usize,
    others: usize,
}

impl Depth {
    fn read(&mut self, byte: u8) {
        match byte {
            b'{' => self.braces += 1,
            b'}' => self.braces = self.braces.saturating_sub(1),
            b'(' | b'[' => self.others += 1,
            b')' | b']' => self.others = self.others.saturating_sub(1),
            _ => {}
        }
    }
}

/// The same text, byte for byte as long, with comments and the insides of literals as spaces; lines
/// stay lines.
fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let skipped = literal_or_comment(bytes, at).max(at + 1);
        if skipped == at + 1 && bytes.get(at).is_some_and(u8::is_ascii) {
            code.extend(text.get(at..skipped));
        } else {
            let inside = bytes.get(at..skipped).unwrap_or_default();
            code.extend(inside.iter().map(|byte| if *byte == b'\n' { '\n' } else { ' ' }));
        }
        at = skipped;
    }
    code
}

/// Where the comment or literal that begins at `at` ends; `at` if none does.
fn literal_or_comment(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let in_word = at > 0 && bytes.get(at - 1).copied().is_some_and(is_word);
    let length = match rest {
        [b'/', b'/', ..] => line_comment(rest),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => string(rest),
        [b'\'', ..] => character(rest),
        [b'r', ..] if !in_word => raw_string(rest, 1),
        [b'b' | b'c', b'r', ..] if !in_word => raw_string(rest, 2),
        _ => 0,
    };
    at + length
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match rest.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal, or nothing if it is a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let behind_escape = rest.iter().skip(3).position(|byte| *byte == b'\'');
        return behind_escape.map_or(0, |at| at + 4);
    }
    // One character is up to four bytes; a lifetime's next quote, if any, does not follow its first
    // letter.
    let quote = rest.iter().skip(2).take(4).position(|byte| *byte == b'\'');
    match quote.map(|at| at + 2) {
        Some(quote) if quote == 2 || rest.get(1).is_some_and(|byte| !byte.is_ascii()) => quote + 1,
        _ => 0,
    }
}

fn raw_string(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest.iter().skip(prefix).take_while(|byte| **byte == b'#').count();
    let quote = prefix + hashes;
    if rest.get(quote) != Some(&b'"') {
        return 0;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let inside = rest.get(quote + 1..).unwrap_or_default();
    let closed = inside.windows(end.len()).position(|window| window == end);
    closed.map_or(rest.len(), |at| quote + 1 + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let code = blanked(text);
        assert_eq!(code.len(), text.len(), "{code}");
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        check("a // b { \n c", "a c");
        check("a /* b /* } */ c */ d", "a d");
        check(r#"a("b \" {") c"#, "a( ) c");
        check(r###"a(r"b\", r#"{"}"#, br##"}"##) c"###, "a( , , ) c");
        check(r"a('{', '\'', '\\', '\u{7b}', 'é', b'}')", "a( , , , , , b )");
        check(
            "fn f<'a>(x: &'a str, y: &'static str) -> Foo<'a, 'b> {}",
            "fn f<'a>(x: &'a str, y: &'static str) -> Foo<'a, 'b> {}",
        );
        check("r#fn bar r", "r#fn bar r");
        check("let größe = 1; // é", "let gr   e = 1;".replace("gr   e", "gr e").as_str());
    }

    #[test]
    fn lines_are_kept() {
        let file = File::new("a.rs", "/* one\ntwo */ fn f() {}\n".to_owned());
        assert_eq!(file.line(file.code.find("fn").unwrap()), 2);
    }

    #[test]
    fn what_only_tests_compile_is_known() {
        let file = File::new(
            "crates/a/src/lib.rs",
            "fn a() {}\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests { fn d() {} }\nfn e() {}".to_owned(),
        );
        let is_test = |name: &str| file.is_test(file.code.find(name).unwrap());
        assert_eq!(
            ["a()", "b;", "c()", "d()", "e()"].map(is_test),
            [false, true, false, true, false]
        );
        assert!(File::new("crates/a/tests/b.rs", "fn c() {}".to_owned()).is_test(3));
    }

    #[test]
    fn an_item_ends_with_its_block_or_semicolon() {
        let check = |code: &str, item: &str| assert_eq!(&code[..end_of_item(code, 0)], item);
        check("fn f(a: [u8; 2]) -> u8 { { 1 } } fn g() {}", "fn f(a: [u8; 2]) -> u8 { { 1 } }");
        check("fn f(); fn g() {}", "fn f();");
    }
}
