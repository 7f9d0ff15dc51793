//! The metrics page.

mod answer;
mod compat;
mod families;
mod page;
mod process;
mod scrape;

pub(crate) use self::answer::{answer, page_of};
pub(crate) use self::compat::statsd;
pub use self::families::{FAMILIES, Family, FamilyKind};
