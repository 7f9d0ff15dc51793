//! Lines that cannot be read.

use std::fmt;

/// Why a line cannot be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokenLine {
    /// It has no time where its format has one.
    NoTime,
    /// It has a time that is none.
    Time,
    /// Its time is before 1970.
    BeforeEpoch,
    /// Its time is after the year 2238.
    FarFuture,
    /// No request in quotes stands behind the time.
    NoRequest,
    /// A quote is opened and never closed.
    Unclosed,
    /// No status stands behind the request.
    NoStatus,
    /// It is no object of JSON.
    NotJson {
        /// Where it ceases to be one, in bytes from 1.
        column: usize,
    },
    /// A field that must be a whole number is none.
    Number {
        /// Which field.
        field: &'static str,
    },
    /// It has more values than the header has columns.
    Columns {
        /// How many values.
        values: usize,
        /// How many columns.
        columns: usize,
    },
    /// It is longer than a line may be.
    TooLong {
        /// How long a line may be, in bytes.
        most: usize,
    },
}

impl fmt::Display for BrokenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokenLine::NoTime => f.write_str(
                "no time was found; an access log has it as [10/Oct/2000:13:55:36 -0700], and of JSON \
                 and CSV --field time=NAME says which field has it",
            ),
            BrokenLine::Time => f.write_str(
                "the time cannot be read; write seconds since 1970 with at most a point in them, RFC \
                 3339, or 10/Oct/2000:13:55:36 -0700",
            ),
            BrokenLine::BeforeEpoch => {
                f.write_str("the time is before 1970; correct it, or leave the line out")
            }
            BrokenLine::FarFuture => f.write_str(
                "the time is after the year 2238; if it is not in seconds, --time-unit ms, us or ns \
                 says so",
            ),
            BrokenLine::NoRequest => f.write_str(
                "no request in quotes stands behind the time; --format says what else the log is",
            ),
            BrokenLine::Unclosed => f.write_str(
                "a quote is not closed; the line was cut, or a value goes over the end of the line, \
                 which must be written as \\n",
            ),
            BrokenLine::NoStatus => f.write_str(
                "no status and size stand behind the request; --format says what else the log is",
            ),
            BrokenLine::NotJson { column } => write!(
                f,
                "it is no JSON object from byte {column} on; write one object in each line, or say \
                 what else the log is with --format"
            ),
            BrokenLine::Number { field } => {
                write!(f, "{field} must be a whole number; write digits only")
            }
            BrokenLine::Columns { values, columns } => write!(
                f,
                "it has {values} values, and the header names {columns}; put a value that has a comma \
                 in quotes"
            ),
            BrokenLine::TooLong { most } => {
                write!(f, "it is longer than {most} bytes; check that the file is a log")
            }
        }
    }
}

impl std::error::Error for BrokenLine {}

/// So much of a line is shown.
const MAX_SHOWN: usize = 120;

/// How a line begins, fit for a terminal: at most 120 characters, with escapes for what is no text and
/// for what a terminal would obey.
///
/// ```
/// use tollgate_replay::log::shown;
///
/// assert_eq!(shown(b"caf\xC3\xA9 \x1b[31m\xFF\\"), r"café \x1b[31m\xff\\");
/// assert_eq!(shown(&[b'x'; 500]).chars().count(), 120);
/// ```
#[must_use]
pub fn shown(line: &[u8]) -> String {
    let most = line.get(..4 * MAX_SHOWN).unwrap_or(line);
    let mut text = String::new();
    for chunk in most.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str(r"\\"),
                _ if must_be_escaped(letter) => text.extend(escaped(letter)),
                _ => text.push(letter),
            }
        }
        text.extend(chunk.invalid().iter().flat_map(|byte| byte.escape_ascii()).map(char::from));
    }
    let is_cut = most.len() < line.len() || text.chars().count() > MAX_SHOWN;
    if is_cut {
        text = text.chars().take(MAX_SHOWN - 1).chain(['…']).collect();
    }
    text
}

/// Control characters, and those that turn the direction of writing, which could make a line look like
/// another.
fn must_be_escaped(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

fn escaped(letter: char) -> Vec<char> {
    match u8::try_from(letter) {
        Ok(byte) if byte.is_ascii() => byte.escape_ascii().map(char::from).collect(),
        _ => letter.escape_unicode().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let check = |line: &[u8], expected: &str| assert_eq!(shown(line), expected);
        check(b"", "");
        check(b"a\tb\r", r"a\tb\r");
        check("\u{202E}gnp.exe\u{85}".as_bytes(), r"\u{202e}gnp.exe\u{85}");
        check(b"\xC3", r"\xc3");
        check(b"\x7f\x00", r"\x7f\x00");
    }

    #[test]
    fn a_cut_line_says_so() {
        assert!(shown(&[b'a'; 121]).ends_with("a…"));
        assert!(!shown(&[b'a'; 120]).ends_with('…'));
        assert!(shown("é".repeat(400).as_bytes()).ends_with("é…"));
    }
}
