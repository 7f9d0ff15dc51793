//! The plain counter of a bare Redis: `INCR` of a key for each minute, `EXPIRE` beside it.

use super::cursor::{Cursor, Item, Stop};
use crate::answer::{Answer, Reply};

/// How long a minute's key lives, in seconds: no shorter than the minute.
pub(super) const LIFE: &str = "60";

pub(super) const MINUTE: u64 = 60_000_000;

/// Reads both replies: the count, and that the key will go.
pub(super) fn read(cursor: &mut Cursor<'_>, threshold: u64) -> Result<Option<Reply>, Stop> {
    let (count, expires) = (cursor.item()?, cursor.item()?);
    Ok(match (count, expires) {
        (Item::Integer(count), Item::Integer(_)) => {
            let allowed = u64::try_from(count).is_ok_and(|x| x <= threshold);
            Some(Reply::Answer(Answer::plain(allowed)))
        }
        (Item::Error(error), _) | (_, Item::Error(error)) => Some(super::resp::refused(error)),
        _ => None,
    })
}
