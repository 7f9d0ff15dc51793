//! Why a text is not a limit: which word, where, and what to write instead.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use super::message::{Pointer, floor};
use crate::error::{LimitError, PolicyError};

/// The most bytes of a text that an error keeps: those of a policy of 16 limits.
pub(super) const MAX_RETAINED: usize = 4_096;

/// Why a text is not a limit, with the word at fault.
///
/// `Display` is one line for logs and answers; [`NotationError::pointer`] is for terminals.
///
/// # Example
/// ```
/// use tollgate_core::Limit;
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
    kind: NotationErrorKind,
}

/// What is wrong with the word that a [`NotationError`] points at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotationErrorKind {
    /// The text is longer than any limit needs. Spans all of it.
    TooLong {
        /// How many bytes it has.
        bytes: usize,
        /// How many are read.
        most: usize,
    },
    /// Something is missing before the word, or at the end where the span is empty.
    Missing {
        /// What is missing.
        what: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A number that is not decimal digits alone: a sign, a point, an exponent, separators.
    Number,
    /// A number too large for any limit.
    TooLarge {
        /// The most that any limit takes.
        most: &'static str,
    },
    /// A word that is no kind and no option.
    UnknownWord {
        /// The known word that is nearest, if one is near.
        nearest: Option<&'static str>,
    },
    /// A word that is no unit of time, where one must stand.
    UnknownUnit {
        /// The unit that is nearest, if one is near.
        nearest: Option<&'static str>,
    },
    /// A word, number or sign that is understood, and cannot stand there.
    Refused {
        /// Why, or what to write instead.
        remedy: &'static str,
    },
    /// A word that says again what an earlier one said.
    Repeated {
        /// The bytes of the earlier one.
        first: Range<usize>,
    },
    /// A word that does not go with another.
    Contradiction {
        /// The bytes of the other one.
        other: Range<usize>,
    },
    /// An option without the word that it belongs to.
    Needs(&'static str),
    /// Its numbers do not make a limit.
    Limit(LimitError),
    /// Its limits do not make a policy. Spans all of them.
    Policy(PolicyError),
}

/// What is wrong, and where; not yet with the text.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    span: Range<usize>,
    kind: NotationErrorKind,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, kind: NotationErrorKind) -> Self {
        Fault { span, kind }
    }

    pub(super) fn missing(span: Range<usize>, what: &'static str, remedy: &'static str) -> Self {
        Fault::new(span, NotationErrorKind::Missing { what, remedy })
    }

    pub(super) fn refused(span: Range<usize>, remedy: &'static str) -> Self {
        Fault::new(span, NotationErrorKind::Refused { remedy })
    }
}

impl NotationError {
    pub(super) fn new(text: &str, Fault { span, kind }: Fault) -> Self {
        let text = text[..floor(text, MAX_RETAINED)].to_owned();
        let span = span.start.min(text.len())..span.end.min(text.len());
        NotationError(Box::new(Inner { text, span, kind }))
    }

    /// Limits that can all be read and do not make a policy.
    pub(crate) fn from_policy(text: &str, error: PolicyError) -> Self {
        NotationError::new(text, Fault::new(0..text.len(), NotationErrorKind::Policy(error)))
    }

    /// The text, of which at most 4,096 bytes are kept.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The bytes of [`NotationError::text`] that are at fault; empty where something is missing
    /// at the end.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }

    /// What is wrong there.
    #[must_use]
    pub fn kind(&self) -> &NotationErrorKind {
        &self.0.kind
    }

    /// Two lines for a terminal: the text, and carets under the word with what is wrong.
    ///
    /// # Example
    /// ```
    /// use tollgate_core::Limit;
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
