//! The words of a line, read one by one.

use std::iter::Peekable;
use std::str::SplitWhitespace;

/// A mistake in a line of a row file.
pub(super) type Fault = String;

/// The words of a line that are still to be read.
#[derive(Clone, Debug)]
pub(super) struct Words<'a>(Peekable<SplitWhitespace<'a>>);

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        Words(line.split_whitespace().peekable())
    }

    pub(super) fn peek(&mut self) -> Option<&'a str> {
        self.0.peek().copied()
    }

    /// The next word, which the line must have.
    pub(super) fn need(&mut self, what: &str) -> Result<&'a str, Fault> {
        self.0.next().ok_or_else(|| format!("{what} is missing"))
    }

    /// Reads the next word if it is this one.
    pub(super) fn skip_word(&mut self, word: &str) -> bool {
        self.0.next_if_eq(&word).is_some()
    }

    /// What `read` makes of the next word, which is read only if that is something.
    pub(super) fn read_as<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.peek().and_then(read)?;
        self.0.next();
        Some(value)
    }

    pub(super) fn rest(self) -> String {
        self.0.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn end(mut self) -> Result<(), Fault> {
        match self.0.next() {
            Some(word) => Err(format!("{word:?} is not understood here")),
            None => Ok(()),
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.next()
    }
}

/// The line without its comment, which begins with `#` at the start of a word.
pub(super) fn without_comment(line: &str) -> &str {
    let begins = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.match_indices('#').map(|(at, _)| at).find(begins);
    comment.map_or(line, |at| &line[..at]).trim()
}
