//! The tokens of the notation: numbers, words and signs with their positions.

use core::ops::Range;

/// The class of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// ASCII digits and nothing else.
    Number,
    /// A number that is not decimal digits: `1.0`, `1e3`, `-5`.
    Malformed,
    Word,
    Slash,
    Semicolon,
}

/// A token and its position in the whole text.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) class: Class,
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
}

/// The tokens of a part of a text.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str, part: Range<usize>) -> Self {
        Tokens { text, at: part.start, end: part.end }
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    /// Returns the next token if it is of this class.
    pub(super) fn next_if(&mut self, class: Class) -> Option<Token<'a>> {
        let token = self.peek().filter(|token| token.class == class)?;
        self.at = token.span.end;
        Some(token)
    }

    /// The position of something missing: the next token, or the end of the last one.
    pub(super) fn gap(&self) -> Range<usize> {
        self.peek().map_or(self.at..self.at, |token| token.span)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.text[self.at..self.end].trim_start();
        let (class, len) = match rest.chars().next()? {
            '/' => (Class::Slash, 1),
            ';' => (Class::Semicolon, 1),
            _ => number_or_word(rest),
        };
        let start = self.end - rest.len();
        self.at = start + len;
        Some(Token { class, text: &rest[..len], span: start..self.at })
    }
}

/// The class and the length of the first token. A word may follow a number without a space, as in
/// `10s`.
fn number_or_word(rest: &str) -> (Class, usize) {
    let ends = |c: char| c.is_whitespace() || c == '/' || c == ';';
    let chunk = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let behind = chunk.trim_start_matches(|c: char| c.is_ascii_digit());
    if behind.len() == chunk.len() {
        let is_number = chunk.trim_start_matches(is_sign_or_point).starts_with(char::is_numeric);
        let class = if is_number { Class::Malformed } else { Class::Word };
        return (class, chunk.len());
    }
    if behind.contains(|c: char| c.is_numeric() || is_sign_or_point(c) || is_separator(c)) {
        return (Class::Malformed, chunk.len());
    }
    (Class::Number, chunk.len() - behind.len())
}

/// A plus, a hyphen, a minus or a decimal point.
pub(super) fn is_sign_or_point(c: char) -> bool {
    matches!(c, '+' | '-' | '\u{2212}' | '.')
}

/// A separator between groups of digits. A comma may also be a decimal point.
pub(super) fn is_separator(c: char) -> bool {
    matches!(c, '_' | '\'' | ',')
}
