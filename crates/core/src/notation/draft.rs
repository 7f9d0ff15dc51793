//! A limit as it is written, word by word, and its conversion to a limit.

use alloc::vec::Vec;
use core::ops::Range;

use super::error::{Fault, FaultKind as Error};
use super::words::Keyword;
use crate::error::LimitError;
use crate::limit::{Kind, Limit, Spec};
use crate::time::Micros;

/// A number and its position in the text. A duration is in µs, and its span includes the unit.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) value: u64,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) slash: usize,
    pub(super) length: Number,
}

/// A keyword with its argument.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) keyword: Keyword,
    pub(super) span: Range<usize>,
    pub(super) number: Option<Number>,
}

/// A parsed limit that is not yet validated.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    count: Number,
    pub(super) window: Option<Window>,
    clauses: Vec<Clause>,
}

impl Draft {
    pub(super) fn new(count: Number, window: Option<Window>) -> Self {
        Draft { count, window, clauses: Vec::new() }
    }

    /// Adds a clause, unless there is one with the same keyword.
    pub(super) fn push(&mut self, clause: Clause) -> Result<(), Fault> {
        if let Some(first) = self.find(clause.keyword) {
            return Err(Fault::new(clause.span, Error::Repeated { first: first.span.clone() }));
        }
        self.clauses.push(clause);
        Ok(())
    }

    pub(super) fn limit(&self) -> Result<Limit, Fault> {
        let kind = self.kind()?;
        self.check_options(kind)?;
        let window = self.window_of(kind)?;
        let spec = self.spec(kind.map_or(Keyword::Token, |kind| kind.keyword), window);
        spec.build().map_err(|error| Fault::new(self.span_of(&error), Error::Limit(error)))
    }

    fn find(&self, keyword: Keyword) -> Option<&Clause> {
        self.clauses.iter().find(|clause| clause.keyword == keyword)
    }

    fn number(&self, keyword: Keyword) -> Option<&Number> {
        self.find(keyword)?.number.as_ref()
    }

    fn value(&self, keyword: Keyword) -> Option<u64> {
        self.number(keyword).map(|number| number.value)
    }

    fn kind(&self) -> Result<Option<&Clause>, Fault> {
        let mut kinds = self.clauses.iter().filter(|clause| clause.keyword.is_kind());
        match (kinds.next(), kinds.next()) {
            (Some(kind), Some(other)) => Err(contradiction(other, kind)),
            (kind, _) => Ok(kind),
        }
    }

    /// Rejects options of another kind, and options that exclude or need each other.
    fn check_options(&self, kind: Option<&Clause>) -> Result<(), Fault> {
        for clause in &self.clauses {
            match (clause.keyword.owner(), kind) {
                (Some(owner), Some(kind)) if owner != kind.keyword => {
                    return Err(contradiction(clause, kind));
                }
                (Some(owner), None) if owner != Keyword::Token => {
                    return Err(Fault::new(clause.span.clone(), Error::Needs(owner.as_str())));
                }
                _ => {}
            }
        }
        match (self.find(Keyword::FromFirst), self.find(Keyword::Offset)) {
            (Some(one), Some(two)) if one.span.start < two.span.start => {
                return Err(contradiction(two, one));
            }
            (Some(one), Some(two)) => return Err(contradiction(one, two)),
            _ => {}
        }
        match (self.find(Keyword::Strict), self.find(Keyword::By)) {
            (Some(strict), None) => {
                Err(Fault::new(strict.span.clone(), Error::Needs(Keyword::By.as_str())))
            }
            _ => Ok(()),
        }
    }

    /// The window, or for a concurrency limit, which has none, the lease.
    fn window_of(&self, kind: Option<&Clause>) -> Result<&Number, Fault> {
        let concurrent = kind.filter(|kind| kind.keyword == Keyword::Concurrent);
        match (concurrent, &self.window) {
            (Some(concurrent), Some(window)) => {
                let other = window.slash..window.length.span.end;
                Err(Fault::new(concurrent.span.clone(), Error::Contradiction { other }))
            }
            (None, Some(window)) => Ok(&window.length),
            (Some(concurrent), None) => self.number(Keyword::Lease).ok_or_else(|| {
                let remedy = "write it after concurrent, as in 20 concurrent lease 60s";
                Fault::missing(after(&concurrent.span), "the lease", remedy)
            }),
            (None, None) => {
                let remedy = "write it after the count, as in 10/s";
                Err(Fault::missing(after(&self.count.span), "the window", remedy))
            }
        }
    }

    fn spec(&self, kind: Keyword, window: &Number) -> Spec {
        let duration = |keyword| self.value(keyword).map(Micros::new);
        let count = self.count.value;
        let kind = match (kind, duration(Keyword::By)) {
            (Keyword::Fixed, _) if self.find(Keyword::FromFirst).is_some() => Kind::FixedFromFirst,
            (Keyword::Fixed, _) => {
                Kind::Fixed { offset: duration(Keyword::Offset).unwrap_or(Micros::ZERO) }
            }
            (Keyword::Log, _) => Kind::Log,
            (Keyword::Sliding, Some(precision)) => {
                Kind::SlidingBy { precision, strict: self.find(Keyword::Strict).is_some() }
            }
            (Keyword::Sliding, None) => Kind::Sliding,
            (Keyword::Queue, _) => match self.value(Keyword::Queue) {
                Some(places) => Kind::Queue { places },
                None => unreachable!("the parser requires a number after queue"),
            },
            (Keyword::Concurrent, _) => Kind::Concurrent,
            _ => Kind::TokenBucket { burst: self.value(Keyword::Burst).unwrap_or(count) },
        };
        let spec = Spec::new(count, Micros::new(window.value), kind);
        if self.find(Keyword::CountDenied).is_some() { spec.with_count_denied() } else { spec }
    }

    /// The span of the word at fault.
    fn span_of(&self, error: &LimitError) -> Range<usize> {
        let number = |keyword| self.number(keyword).map(|number| number.span.clone());
        let span = match error {
            LimitError::ZeroCount | LimitError::Concurrency(_) => None,
            LimitError::Window(_) => self
                .window
                .as_ref()
                .map(|window| window.length.span.clone())
                .or(number(Keyword::Lease)),
            LimitError::ZeroBurst => number(Keyword::Burst),
            LimitError::Offset { .. } => number(Keyword::Offset),
            LimitError::Precision { .. } => number(Keyword::By),
            LimitError::CountDenied => {
                self.find(Keyword::CountDenied).map(|clause| clause.span.clone())
            }
            // If the count may stay, its capacity is too large.
            LimitError::Inexact { limit, nearest } if limit.count == nearest.count => {
                number(Keyword::Burst).or(number(Keyword::Queue))
            }
            LimitError::Inexact { .. } => None,
        };
        span.unwrap_or_else(|| self.count.span.clone())
    }
}

/// The error for a clause that contradicts an earlier one.
fn contradiction(clause: &Clause, other: &Clause) -> Fault {
    Fault::new(clause.span.clone(), Error::Contradiction { other: other.span.clone() })
}

/// The position right after a word.
fn after(span: &Range<usize>) -> Range<usize> {
    span.end..span.end
}
