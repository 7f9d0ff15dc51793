//! Messages of notation errors: one line, or two lines with carets.

use core::fmt::{self, Write};
use core::ops::Range;

use super::error::{FaultKind as Kind, NotationError};
use super::number;

/// The most bytes of the text in a message.
const MAX_SHOWN: usize = 96;
/// The most of these bytes before the word at fault.
const SHOWN_BEFORE: usize = 40;
/// The most bytes of a word in a message.
const MAX_WORD_LEN: usize = 32;

const KEYWORDS: &str = "token, fixed, log, sliding, queue, concurrent, burst, from-first, offset, \
                        by, strict, lease and count-denied";
const UNITS: &str = "ms, s, min, h, d and w";

/// Writes one line: the text, the column of the word, counted in characters from 1, the fault and
/// the remedy.
impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, span) = (self.text(), self.span());
        let shown = shown(text, &span);
        let before = if shown.start > 0 { "…" } else { "" };
        let after = if shown.end < text.len() { "…" } else { "" };
        let column = column(text, &span);
        write!(f, "in {before}{:?}{after}, column {column}: {}", &text[shown], Message(self))
    }
}

/// The text on one line; on the next, carets under the word and the message.
pub(super) struct Pointer<'a>(pub(super) &'a NotationError);

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, span) = (self.0.text(), self.0.span());
        let shown = shown(text, &span);
        let (before, after) = (shown.start..span.start, span.end.min(shown.end)..shown.end);
        let word = span.start..after.start;
        let mut indent = usize::from(before.start > 0);
        let mut carets = 0;
        f.write_str(if before.start > 0 { "…" } else { "" })?;
        indent += write_visibly(f, &text[before])?;
        carets += write_visibly(f, &text[word])?;
        write_visibly(f, &text[after])?;
        f.write_str(if shown.end < text.len() { "…" } else { "" })?;
        let carets = carets.max(1);
        write!(f, "\n{:indent$}{:^<carets$} {}", "", "", Message(self.0))
    }
}

/// Writes invisible characters as escapes. Returns the number of characters written.
fn write_visibly(f: &mut fmt::Formatter<'_>, text: &str) -> Result<usize, fmt::Error> {
    let mut written = 0;
    for c in text.chars() {
        if matches!(c, '"' | '\'' | '\\') {
            f.write_char(c)?;
            written += 1;
        } else {
            let escaped = c.escape_debug();
            written += escaped.clone().count();
            write!(f, "{escaped}")?;
        }
    }
    Ok(written)
}

/// The fault of the word, and the remedy.
struct Message<'a>(&'a NotationError);

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.text();
        let at = &text[self.0.span()];
        let word = Quoted(at);
        match self.0.kind() {
            Kind::Number if at.len() > 1 && at.ends_with(',') => write_comma(f, &word),
            Kind::UnknownWord { .. } | Kind::UnknownUnit { .. } if at.find(',') > Some(0) => {
                write_comma(f, &word)
            }
            Kind::TooLong { bytes, most } => {
                write!(f, "the text has {bytes} bytes; at most {most} are read")
            }
            Kind::Missing { what, remedy } if at.is_empty() => {
                write!(f, "{what} is missing; {remedy}")
            }
            Kind::Missing { what, remedy } => {
                write!(f, "{what} is missing before {word}; {remedy}")
            }
            Kind::Number => {
                write!(f, "{word} ")?;
                number::write_remedy(f, at)
            }
            Kind::TooLarge { most } => write!(f, "{word} is too large; at most {most}"),
            Kind::UnknownWord { nearest } => write_unknown(f, "word", at, *nearest, KEYWORDS),
            Kind::UnknownUnit { nearest } => write_unknown(f, "unit", at, *nearest, UNITS),
            Kind::Refused { remedy } => write!(f, "{word} is not accepted; {remedy}"),
            Kind::Repeated { first } => {
                write!(f, "{word} repeats {}; leave one of them out", Placed(text, first))
            }
            Kind::Contradiction { other } => {
                write!(f, "{word} does not go with {}; leave one of them out", Placed(text, other))
            }
            Kind::Needs(needed) => {
                write!(f, "{word} needs \"{needed}\"; write both, or neither")
            }
            Kind::Limit(limit) => limit.fmt(f),
            Kind::Policy(policy) => policy.fmt(f),
        }
    }
}

fn write_comma(f: &mut fmt::Formatter<'_>, word: &Quoted<'_>) -> fmt::Result {
    write!(f, "{word} contains a comma; separate limits by semicolons, as in 10/s; 100/min")
}

fn write_unknown(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    word: &str,
    nearest: Option<&str>,
    known: &str,
) -> fmt::Result {
    write!(f, "unknown {what} {}; ", Quoted(word))?;
    match nearest {
        Some(nearest) => write!(f, "did you mean \"{nearest}\"?"),
        None => write!(f, "known are {known}"),
    }
}

/// A word in quotes with invisible characters escaped. A long word is cut off.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..floor(self.0, MAX_WORD_LEN)];
        write!(f, "{shown:?}")?;
        f.write_str(if shown.len() < self.0.len() { "…" } else { "" })
    }
}

/// Another word of the text and its column.
struct Placed<'a>(&'a str, &'a Range<usize>);

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Placed(text, span) = *self;
        write!(f, "{} at column {}", Quoted(&text[span.clone()]), column(text, span))
    }
}

/// The column of a span: the index of its first character, counted from 1.
fn column(text: &str, span: &Range<usize>) -> usize {
    text[..span.start].chars().count() + 1
}

/// The part of the text in a message: a short text, or what surrounds the word.
fn shown(text: &str, span: &Range<usize>) -> Range<usize> {
    if text.len() <= MAX_SHOWN {
        return 0..text.len();
    }
    let start = floor(text, span.start.saturating_sub(SHOWN_BEFORE));
    start..floor(text, start + MAX_SHOWN)
}

/// The last character boundary at or before `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
