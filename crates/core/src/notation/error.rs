//! Errors of the notation: the word at fault, its position, and what to write instead.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use super::message::{Pointer, floor};
use crate::error::{LimitError, PolicyError};

/// The most bytes of a text that an error keeps: enough for a policy of 16 limits.
pub(super) const MAX_RETAINED: usize = 4_096;

/// An error for a text that is not a limit, with the word at fault.
///
/// `Display` writes one line for logs and responses; [`NotationError::pointer`] is for terminals.
///
/// # Example
/// ```
/// use tollgate_algorithms::Limit;
/// let error = "10/month".parse::<Limit>().unwrap_err();
/// assert_eq!(error.span(), 3..8);
/// assert_eq!(&error.text()[error.span()], "month");
/// assert_eq!(
///     error.to_string(),
///     r#"in "10/month", column 4: "month" is not accepted; months differ in length: write 30d, or 1d windows"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotationError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    text: String,
    span: Range<usize>,
    kind: FaultKind,
}

/// The fault of the word at the span of a [`NotationError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The text is too long. The span is the whole text.
    TooLong { bytes: usize, most: usize },
    /// Something is missing before the word, or at the end if the span is empty.
    Missing { what: &'static str, remedy: &'static str },
    /// A number with a sign, a decimal point, an exponent or separators.
    Number,
    /// A number too large for any limit.
    TooLarge { most: &'static str },
    /// A word that is neither a kind nor an option, and the most similar one that is.
    UnknownWord { nearest: Option<&'static str> },
    /// A word in the position of a unit of time, and the most similar unit.
    UnknownUnit { nearest: Option<&'static str> },
    /// A known word, a number or a sign in the wrong position.
    Refused { remedy: &'static str },
    /// A word that repeats an earlier one.
    Repeated { first: Range<usize> },
    /// A word that contradicts another one.
    Contradiction { other: Range<usize> },
    /// An option without the word that it needs.
    Needs(&'static str),
    /// Numbers that are not a valid limit.
    Limit(LimitError),
    /// Limits that are not a valid policy. The span is the whole text.
    Policy(PolicyError),
}

/// A fault and its position, without the text.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    span: Range<usize>,
    kind: FaultKind,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, kind: FaultKind) -> Self {
        Fault { span, kind }
    }

    pub(super) fn missing(span: Range<usize>, what: &'static str, remedy: &'static str) -> Self {
        Fault::new(span, FaultKind::Missing { what, remedy })
    }

    pub(super) fn refused(span: Range<usize>, remedy: &'static str) -> Self {
        Fault::new(span, FaultKind::Refused { remedy })
    }
}

impl NotationError {
    pub(super) fn new(text: &str, Fault { span, kind }: Fault) -> Self {
        let text = text[..floor(text, MAX_RETAINED)].to_owned();
        let span = span.start.min(text.len())..span.end.min(text.len());
        NotationError(Box::new(Inner { text, span, kind }))
    }

    /// Creates an error for valid limits that are not a valid policy.
    pub(crate) fn from_policy(text: &str, error: PolicyError) -> Self {
        NotationError::new(text, Fault::new(0..text.len(), FaultKind::Policy(error)))
    }

    /// The text, cut off after 4,096 bytes.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The position in [`NotationError::text`] of the word at fault; empty if something is missing
    /// at the end.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }

    pub(super) fn kind(&self) -> &FaultKind {
        &self.0.kind
    }

    /// Formats two lines for a terminal: the text, then carets under the word and the message.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::Limit;
    /// let error = "10/s burts 20".parse::<Limit>().unwrap_err();
    /// assert_eq!(
    ///     error.pointer().to_string(),
    ///     "10/s burts 20\n     ^^^^^ unknown word \"burts\"; did you mean \"burst\"?"
    /// );
    /// ```
    #[must_use]
    pub fn pointer(&self) -> impl fmt::Display {
        Pointer(self)
    }
}

impl core::error::Error for NotationError {}
