//! The canonical text of a limit, which parses back to the same limit.

use core::fmt;

use super::words;
use crate::limit::{Kind, Limit, Spec};
use crate::time::Micros;

/// A length of time as the notation writes it, in the largest unit that divides it: `10min`.
///
/// What is not whole milliseconds is written in `us`, a unit that no limit takes: such a length
/// shows as what it is, and the parser says why it is refused.
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

/// A window behind its slash, where `1min` is `min`.
struct Window(Micros);

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Length(self.0).reduced() {
            (1, unit) => f.write_str(unit),
            (number, unit) => write!(f, "{number}{unit}"),
        }
    }
}

/// The canonical text: units reduced, words in one order, nothing that is understood anyway.
///
/// Numbers that do not make a limit are shown all the same; a window, offset or precision that
/// is not whole milliseconds is then written in `us`, which does not parse.
///
/// # Example
/// ```
/// use tollgate_core::{Kind, Micros, Spec};
/// let kind = Kind::Fixed { offset: Micros::from_secs(18_000) };
/// let spec = Spec::new(100, Micros::from_millis(60_000), kind).count_denied();
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

/// The canonical text: it parses back to the same limit, and equal limits have the same.
///
/// # Example
/// ```
/// use tollgate_core::Limit;
/// let limit: Limit = "240 / 60 minutes strict sliding by 60s".parse()?;
/// assert_eq!(limit.to_string(), "240/h sliding by 1min strict");
/// # Ok::<(), tollgate_core::NotationError>(())
/// ```
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().fmt(f)
    }
}
