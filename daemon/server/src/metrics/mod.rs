//! The metrics page.

mod accept;
mod answer;
mod families;
mod page;
mod process;
mod reference;
mod scrape;

pub(crate) use self::answer::{answer, page_of};
pub use self::families::{FAMILIES, Family, FamilyKind};
pub(crate) use self::reference::statsd;
