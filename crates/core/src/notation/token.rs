//! The text cut into numbers, words and signs, each with its place.

use core::ops::Range;

/// What a token looks like, before anything is known of its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// ASCII digits and nothing else.
    Number,
    /// What begins like a number and is more than digits with a word behind: `1.0`, `1e3`, `-5`.
    Malformed,
    Word,
    Slash,
    Semicolon,
}

/// A number, word or sign, and its bytes in the whole text.
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

    /// The next token, if it is of this class.
    pub(super) fn next_if(&mut self, class: Class) -> Option<Token<'a>> {
        let token = self.peek().filter(|x| x.class == class)?;
        self.at = token.span.end;
        Some(token)
    }

    /// Where something is missing: the token that stands there, or the place after the last one.
    pub(super) fn gap(&self) -> Range<usize> {
        self.peek().map_or(self.at..self.at, |x| x.span)
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

/// The class and length of what `rest` begins with. A number may have its word right behind it,
/// as in `10s`.
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
pub(super) fn is_sign_or_point(it: char) -> bool {
    matches!(it, '+' | '-' | '\u{2212}' | '.')
}

/// What people put between groups of digits. A comma is also some people's decimal point.
pub(super) fn is_separator(it: char) -> bool {
    matches!(it, '_' | '\'' | ',')
}
