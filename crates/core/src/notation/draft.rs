//! What a text says, word by word, and the limit that it comes to.

use alloc::vec::Vec;
use core::ops::Range;

use super::error::{Fault, NotationErrorKind as Error};
use super::words::Keyword;
use crate::error::LimitError;
use crate::limit::{Kind, Limit, Spec};
use crate::time::Micros;

/// A number and its bytes in the text. A duration is in µs, its unit among the bytes.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) value: u64,
    pub(super) span: Range<usize>,
}

/// What stands behind the slash, and where that is.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) slash: usize,
    pub(super) length: Number,
}

/// A keyword, with its number if it takes one.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) keyword: Keyword,
    pub(super) span: Range<usize>,
    pub(super) number: Option<Number>,
}

/// One limit as it was written: what stands where, not yet what it means together.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    count: Number,
    pub(super) window: Option<Window>,
    said: Vec<Said>,
}

impl Draft {
    pub(super) fn new(count: Number, window: Option<Window>) -> Self {
        Draft { count, window, said: Vec::new() }
    }

    pub(super) fn say(&mut self, said: Said) -> Result<(), Fault> {
        if let Some(first) = self.find(said.keyword) {
            return Err(Fault::new(said.span, Error::Repeated { first: first.span.clone() }));
        }
        self.said.push(said);
        Ok(())
    }

    /// The limit that this comes to.
    pub(super) fn limit(&self) -> Result<Limit, Fault> {
        let kind = self.kind()?;
        self.hold_options_to(kind)?;
        let window = self.window_of(kind)?;
        let spec = self.spec(kind.map_or(Keyword::Token, |kind| kind.keyword), window);
        spec.build().map_err(|error| Fault::new(self.place_of(&error), Error::Limit(error)))
    }

    fn find(&self, keyword: Keyword) -> Option<&Said> {
        self.said.iter().find(|x| x.keyword == keyword)
    }

    fn number(&self, keyword: Keyword) -> Option<&Number> {
        self.find(keyword)?.number.as_ref()
    }

    fn value(&self, keyword: Keyword) -> Option<u64> {
        self.number(keyword).map(|number| number.value)
    }

    fn kind(&self) -> Result<Option<&Said>, Fault> {
        let mut kinds = self.said.iter().filter(|x| x.keyword.is_kind());
        match (kinds.next(), kinds.next()) {
            (Some(kind), Some(other)) => Err(contradiction(other, kind)),
            (kind, _) => Ok(kind),
        }
    }

    /// Refuses options that belong to another kind, and those that exclude or need each other.
    fn hold_options_to(&self, kind: Option<&Said>) -> Result<(), Fault> {
        for said in &self.said {
            match (said.keyword.owner(), kind) {
                (Some(owner), Some(kind)) if owner != kind.keyword => {
                    return Err(contradiction(said, kind));
                }
                (Some(owner), None) if owner != Keyword::Token => {
                    return Err(Fault::new(said.span.clone(), Error::Needs(owner.as_str())));
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

    /// The window, or the lease of requests in flight, which have no window.
    fn window_of(&self, kind: Option<&Said>) -> Result<&Number, Fault> {
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
                Kind::Fixed { offset: duration(Keyword::Offset).unwrap_or_default() }
            }
            (Keyword::Log, _) => Kind::Log,
            (Keyword::Sliding, Some(precision)) => {
                Kind::SlidingBy { precision, strict: self.find(Keyword::Strict).is_some() }
            }
            (Keyword::Sliding, None) => Kind::Sliding,
            (Keyword::Queue, _) => {
                Kind::Queue { places: self.value(Keyword::Queue).unwrap_or_default() }
            }
            (Keyword::Concurrent, _) => Kind::Concurrent,
            _ => Kind::TokenBucket { burst: self.value(Keyword::Burst).unwrap_or(count) },
        };
        let spec = Spec::new(count, Micros::new(window.value), kind);
        if self.find(Keyword::CountDenied).is_some() { spec.count_denied() } else { spec }
    }

    /// The word whose number is wrong.
    fn place_of(&self, error: &LimitError) -> Range<usize> {
        let number = |keyword| self.number(keyword).map(|number| number.span.clone());
        let place = match error {
            LimitError::ZeroCount | LimitError::Concurrency(_) => None,
            LimitError::Window(_) => self
                .window
                .as_ref()
                .map(|window| window.length.span.clone())
                .or(number(Keyword::Lease)),
            LimitError::ZeroBurst => number(Keyword::Burst),
            LimitError::Offset { .. } => number(Keyword::Offset),
            LimitError::Precision { .. } => number(Keyword::By),
            LimitError::CountDenied => self.find(Keyword::CountDenied).map(|x| x.span.clone()),
            // Where the count may stay, it is the capacity beside it that is too large.
            LimitError::Inexact { limit, nearest } if limit.count == nearest.count => {
                number(Keyword::Burst).or(number(Keyword::Queue))
            }
            LimitError::Inexact { .. } => None,
        };
        place.unwrap_or_else(|| self.count.span.clone())
    }
}

/// `said` does not go with `other`, which may stand.
fn contradiction(said: &Said, other: &Said) -> Fault {
    Fault::new(said.span.clone(), Error::Contradiction { other: other.span.clone() })
}

/// The place right behind a word.
fn after(span: &Range<usize>) -> Range<usize> {
    span.end..span.end
}
