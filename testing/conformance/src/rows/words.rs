//! The words of a line.

use std::iter::Peekable;
use std::str::SplitWhitespace;

/// A mistake in a line of a row file.
pub(super) type Mistake = String;

/// The remaining words of a line.
#[derive(Clone, Debug)]
pub(super) struct Words<'a>(Peekable<SplitWhitespace<'a>>);

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Words(line.split_whitespace().peekable())
    }

    pub(super) fn peek(&mut self) -> Option<&'a str> {
        self.0.peek().copied()
    }

    /// The next word; an error if there is none.
    pub(super) fn need(&mut self, what: &str) -> Result<&'a str, Mistake> {
        self.0.next().ok_or_else(|| format!("{what} is missing"))
    }

    /// Skips the next word if it equals `word`; returns whether it did.
    pub(super) fn skip_word(&mut self, word: &str) -> bool {
        self.0.next_if_eq(&word).is_some()
    }

    /// Parses the next word, and skips it unless `read` returns `None`.
    pub(super) fn read_as<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.peek().and_then(read)?;
        self.0.next();
        Some(value)
    }

    pub(super) fn rest(self) -> String {
        self.0.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn end(mut self) -> Result<(), Mistake> {
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

/// The line without its comment.
pub(super) fn without_comment(line: &str) -> &str {
    let begins = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.match_indices('#').map(|(at, _)| at).find(begins);
    comment.map_or(line, |at| &line[..at]).trim()
}
