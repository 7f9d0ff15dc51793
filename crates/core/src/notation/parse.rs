//! Parsing of limits and durations.

use alloc::vec::Vec;
use core::ops::Range;
use core::str::FromStr;

use super::draft::{Clause, Draft, Number, Window};
use super::error::{Fault, FaultKind as Error, MAX_RETAINED, NotationError};
use super::token::{Class, Token, Tokens};
use super::words::{self, Argument, Keyword};
use crate::limit::Limit;
use crate::time::Micros;

/// The most bytes of one limit. Limits in practice have at most about 60.
const MAX_BYTES: usize = 256;
/// The greatest count of any limit, ⌊(2^53 − 1) / 2⌋, for messages.
const MAX_COUNT: &str = "4503599627370495";
/// The longest window, for messages.
const MAX_WINDOW: &str = "366d";
/// The longest duration in microseconds that 64 bits hold, for messages.
const MAX_DURATION: &str = "213503982d";

/// Parses a limit: `COUNT / [N] UNIT [KIND] [OPTION…]` or `COUNT concurrent lease DURATION`.
///
/// Units are `ms`, `s`, `min` (`m` too), `h`, `d` and `w`, or their long names. Kinds are `token`
/// or `gcra` (a token bucket, also the default), `fixed`, `log`, `sliding`, `queue N` and
/// `concurrent`. Options are `burst N`, `from-first`, `offset DURATION`, `by DURATION`, `strict`,
/// `lease DURATION` and `count-denied`. Kind and options may be in any order, words are not
/// case-sensitive, and spaces are only needed between words. A number consists of decimal digits.
/// The text may have at most 256 bytes.
///
/// # Errors
/// The text does not have this form, or its numbers are not a valid limit. The error names the word
/// at fault, its position, and what to write instead.
///
/// # Example
/// ```
/// use tollgate_algorithms::Limit;
/// let limit: Limit = "100 / 1 minute count-denied fixed".parse()?;
/// assert_eq!(limit.to_string(), "100/min fixed count-denied");
///
/// let error = "10/s burts 20".parse::<Limit>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"in "10/s burts 20", column 6: unknown word "burts"; did you mean "burst"?"#
/// );
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
impl FromStr for Limit {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        limit(text, 0..text.len()).map_err(|error| NotationError::new(text, error))
    }
}

/// Parses the limits of a policy, joined by `;`, in the order in which they are written.
///
/// # Errors
/// A limit is invalid, a semicolon has no limit before or after it, or the text has more than 4,096
/// bytes. The span and the column of the error are those in the whole text.
///
/// # Example
/// ```
/// use tollgate_algorithms::parse_limits;
/// let limits = parse_limits("120/min fixed; 10/s")?;
/// assert_eq!(limits.len(), 2);
/// assert_eq!(limits[1].to_string(), "10/s");
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
pub fn parse_limits(text: &str) -> Result<Vec<Limit>, NotationError> {
    let read = || {
        at_most(MAX_RETAINED, 0..text.len())?;
        let mut start = 0;
        let mut limits = Vec::new();
        for part in text.split(';') {
            limits.push(part_of_policy(text, start..start + part.len())?);
            start += part.len() + 1;
        }
        Ok(limits)
    };
    read().map_err(|error| NotationError::new(text, error))
}

/// Parses a duration: a number and a unit, such as `30s`, `5 min` or `1500ms`.
///
/// The units are those of a limit. The duration may be as long as [`Micros`] allows.
///
/// # Errors
/// The text is not one number and one unit, or longer than 64 bits of microseconds.
///
/// # Example
/// ```
/// use tollgate_algorithms::{Micros, parse_duration};
/// assert_eq!(parse_duration("1500ms")?, Micros::from_millis(1_500));
/// assert_eq!(parse_duration("5 min")?, Micros::from_secs(300));
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
pub fn parse_duration(text: &str) -> Result<Micros, NotationError> {
    let read = || {
        at_most(MAX_BYTES, 0..text.len())?;
        let mut tokens = Tokens::new(text, 0..text.len());
        let all = tokens.clone();
        let number = number(&mut tokens, MAX_DURATION)?.ok_or_else(|| match all.peek() {
            Some(unit) => Fault::missing(unit.span, "the number", "write it first, as in 30s"),
            None => Fault::missing(0..0, "a duration", "write a number and a unit, as in 30s"),
        })?;
        let duration = with_unit(&mut tokens, Some(number), MAX_DURATION)?;
        match tokens.next() {
            Some(more) => Err(Fault::refused(more.span, "a duration is one number and one unit")),
            None => Ok(Micros::new(duration.value)),
        }
    };
    read().map_err(|error| NotationError::new(text, error))
}

fn at_most(most: usize, part: Range<usize>) -> Result<(), Fault> {
    match part.len() {
        bytes if bytes > most => Err(Fault::new(part, Error::TooLong { bytes, most })),
        _ => Ok(()),
    }
}

fn part_of_policy(text: &str, part: Range<usize>) -> Result<Limit, Fault> {
    if text[part.clone()].trim().is_empty() && text.contains(';') {
        // The semicolon after it, or the end of the text.
        let at = part.end..text.len().min(part.end + 1);
        let remedy = "write one, as in 10/s, or leave the semicolon out";
        return Err(Fault::missing(at, "a limit", remedy));
    }
    limit(text, part)
}

fn limit(text: &str, part: Range<usize>) -> Result<Limit, Fault> {
    at_most(MAX_BYTES, part.clone())?;
    let mut tokens = Tokens::new(text, part);
    let count = count(&mut tokens)?;
    let window = match tokens.next_if(Class::Slash) {
        Some(slash) => Some(Window { slash: slash.span.start, length: window(&mut tokens)? }),
        None => None,
    };
    let mut draft = Draft::new(count, window);
    while let Some(token) = tokens.next() {
        draft.push(clause(token, &mut tokens, draft.window.is_none())?)?;
    }
    draft.limit()
}

fn count(tokens: &mut Tokens<'_>) -> Result<Number, Fault> {
    if tokens.peek().is_none() {
        return Err(Fault::missing(tokens.gap(), "a limit", "write one, as in 10/s"));
    }
    let count = number(tokens, MAX_COUNT)?;
    count.ok_or_else(|| Fault::missing(tokens.gap(), "the count", "write it first, as in 10/s"))
}

/// Parses the window after the slash.
fn window(tokens: &mut Tokens<'_>) -> Result<Number, Fault> {
    let is_there = tokens.peek().is_some_and(|token| match token.class {
        Class::Number | Class::Malformed => true,
        Class::Word => Keyword::from_word(token.text).is_none(),
        Class::Slash | Class::Semicolon => false,
    });
    if !is_there {
        let remedy = "write it after the slash, as in 10/s or 10/5min";
        return Err(Fault::missing(tokens.gap(), "the window", remedy));
    }
    let number = number(tokens, MAX_WINDOW)?;
    with_unit(tokens, number, MAX_WINDOW)
}

/// Parses a keyword and its argument.
fn clause(
    token: Token<'_>,
    tokens: &mut Tokens<'_>,
    may_lack_slash: bool,
) -> Result<Clause, Fault> {
    let keyword = match token.class {
        Class::Word => Keyword::from_word(token.text),
        _ => None,
    };
    let Some(keyword) = keyword else {
        return Err(not_a_keyword(token, may_lack_slash));
    };
    let number = match keyword.argument() {
        Argument::None => None,
        Argument::Count(remedy) => Some(argument(tokens, MAX_COUNT, "the number", remedy)?),
        Argument::Duration(remedy) => {
            let number = argument(tokens, MAX_WINDOW, "the duration", remedy)?;
            Some(with_unit(tokens, Some(number), MAX_WINDOW)?)
        }
    };
    Ok(Clause { keyword, span: token.span, number })
}

fn argument(
    tokens: &mut Tokens<'_>,
    most: &'static str,
    what: &'static str,
    remedy: &'static str,
) -> Result<Number, Fault> {
    number(tokens, most)?.ok_or_else(|| Fault::missing(tokens.gap(), what, remedy))
}

fn not_a_keyword(token: Token<'_>, may_lack_slash: bool) -> Fault {
    match token.class {
        Class::Malformed => Fault::new(token.span, Error::Number),
        Class::Number => {
            Fault::refused(token.span, "a number follows burst, queue, offset, by or lease")
        }
        Class::Slash => Fault::refused(token.span, "a limit has one window, right after its count"),
        Class::Semicolon => Fault::refused(
            token.span,
            "it joins the limits of a policy, and one limit is read here",
        ),
        Class::Word => match words::remedy(token.text) {
            Some(remedy) => Fault::refused(token.span, remedy),
            None if may_lack_slash && words::unit(token.text).is_some() => {
                Fault::missing(token.span, "\"/\"", "write it after the count, as in 10/s")
            }
            None => {
                let nearest = words::suggest(token.text, words::keywords());
                Fault::new(token.span, Error::UnknownWord { nearest })
            }
        },
    }
}

/// Parses the next token if it is a number.
fn number(tokens: &mut Tokens<'_>, most: &'static str) -> Result<Option<Number>, Fault> {
    if let Some(token) = tokens.next_if(Class::Malformed) {
        return Err(Fault::new(token.span, Error::Number));
    }
    let Some(Token { text, span, .. }) = tokens.next_if(Class::Number) else { return Ok(None) };
    match text.parse() {
        Ok(value) => Ok(Some(Number { value, span })),
        Err(_) => Err(Fault::new(span, Error::TooLarge { most })),
    }
}

/// Parses a unit and multiplies it by the number before it, if there is one.
fn with_unit(
    tokens: &mut Tokens<'_>,
    number: Option<Number>,
    most: &'static str,
) -> Result<Number, Fault> {
    let missing = |at| {
        let remedy = "write ms, s, min, h, d or w after the number, as in 10s";
        Fault::missing(at, "the unit", remedy)
    };
    let Some(word) = tokens.next_if(Class::Word) else { return Err(missing(tokens.gap())) };
    let Some(unit) = words::unit(word.text) else {
        return Err(match words::remedy(word.text) {
            _ if Keyword::from_word(word.text).is_some() => missing(word.span),
            Some(remedy) => Fault::refused(word.span, remedy),
            None => {
                let nearest = words::suggest(word.text, words::units());
                Fault::new(word.span, Error::UnknownUnit { nearest })
            }
        });
    };
    let start = number.as_ref().map_or(word.span.start, |number| number.span.start);
    let span = start..word.span.end;
    match number.map_or(1, |number| number.value).checked_mul(unit) {
        Some(value) => Ok(Number { value, span }),
        None => Err(Fault::new(span, Error::TooLarge { most })),
    }
}
