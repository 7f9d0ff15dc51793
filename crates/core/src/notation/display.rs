//! The canonical text of a limit.

use core::fmt;

use super::words;
use crate::limit::spec::{Kind, Spec};
use crate::time::Micros;

/// A length of time as the notation writes it, in the largest unit that divides it: `10min`.
///
/// A length that is not whole milliseconds is written in `us`. The parser rejects that unit with a
/// reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length(pub(crate) Micros);

impl Length {
    fn reduced(self) -> (u64, &'static str) {
        match self.0.get() {
            0 => (0, "s"),
            us => words::reduced(us).unwrap_or((us, "us")),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.reduced();
        write!(f, "{number}{unit}")
    }
}

/// A window after its slash, where `1min` is written `min`.
struct Window(Micros);

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Length(self.0).reduced() {
            (1, unit) => f.write_str(unit),
            (number, unit) => write!(f, "{number}{unit}"),
        }
    }
}

/// Writes the canonical text: reduced units, a fixed order of words, no defaults.
///
/// Invalid numbers are written too. A window, offset or precision that is not whole milliseconds is
/// written in `us`, which does not parse.
///
/// # Example
/// ```
/// use tollgate_algorithms::{Kind, Micros, Spec};
/// let kind = Kind::Fixed { offset: Micros::from_secs(18_000) };
/// let spec = Spec::new(100, Micros::from_millis(60_000), kind).with_count_denied();
/// assert_eq!(spec.to_string(), "100/min fixed offset 5h count-denied");
/// ```
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { count, window, kind, count_denied } = *self;
        match kind {
            Kind::Concurrent => write!(f, "{count} concurrent lease {}", Length(window))?,
            _ => write!(f, "{count}/{}", Window(window))?,
        }
        match kind {
            Kind::TokenBucket { burst } if burst != count => write!(f, " burst {burst}")?,
            Kind::TokenBucket { .. } | Kind::Concurrent => {}
            Kind::Fixed { offset: Micros::ZERO } => f.write_str(" fixed")?,
            Kind::Fixed { offset } => write!(f, " fixed offset {}", Length(offset))?,
            Kind::FixedFromFirst => f.write_str(" fixed from-first")?,
            Kind::Log => f.write_str(" log")?,
            Kind::Sliding => f.write_str(" sliding")?,
            Kind::SlidingBy { precision, strict } => {
                write!(f, " sliding by {}", Length(precision))?;
                f.write_str(if strict { " strict" } else { "" })?;
            }
            Kind::Queue { places } => write!(f, " queue {places}")?,
        }
        f.write_str(if count_denied { " count-denied" } else { "" })
    }
}
