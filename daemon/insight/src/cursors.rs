//! Cursors of pages.
//!
//! A cursor is a number that this process has handed out: a position contains a key, which `privacy`
//! may hide from the client.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tollgate::random_id;

use crate::query::{KeysQuery, Order, Position, QueryError};

/// The most cursors that are remembered; each has at most two keys of 256 bytes.
const MAX_CURSORS: usize = 1_024;
/// The length of the part of a cursor that identifies the process.
const PROCESS_LEN: usize = 8;

/// The cursors that this process has handed out.
#[derive(Debug)]
pub(crate) struct Cursors {
    process: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the first cursor in the queue.
    first: u64,
    queue: VecDeque<Cursor>,
}

#[derive(Debug)]
struct Cursor {
    policy: Box<str>,
    order: Order,
    prefix: Box<[u8]>,
    position: Position,
}

impl Default for Cursors {
    fn default() -> Self {
        let process = random_id().to_string().chars().take(PROCESS_LEN).collect();
        Cursors { process, state: Mutex::default() }
    }
}

impl Cursors {
    /// Hands out a cursor for the position after a page.
    pub(crate) fn add(&self, query: &KeysQuery<'_>, position: Position) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.queue.len() == MAX_CURSORS {
            state.queue.pop_front();
            state.first += 1;
        }
        let number = state.first + u64::try_from(state.queue.len()).unwrap_or(u64::MAX);
        state.queue.push_back(Cursor {
            policy: query.policy.into(),
            order: query.order,
            prefix: query.prefix.into(),
            position,
        });
        format!("{}{number:x}", self.process)
    }

    /// The position of the cursor of a query, if it has one.
    pub(crate) fn position(&self, query: &KeysQuery<'_>) -> Result<Option<Position>, QueryError> {
        let Some(text) = query.cursor else { return Ok(None) };
        let invalid = || QueryError::Cursor(text.chars().take(64).collect::<String>().into());
        let is_hexadecimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let (process, number) =
            text.split_at_checked(PROCESS_LEN).filter(|_| is_hexadecimal).ok_or_else(invalid)?;
        let number = u64::from_str_radix(number, 16).map_err(|_| invalid())?;
        if process != self.process {
            return Err(QueryError::ForeignCursor);
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let index = number.checked_sub(state.first).ok_or(QueryError::ExpiredCursor)?;
        let index = usize::try_from(index).map_err(|_| invalid())?;
        let cursor = state.queue.get(index).ok_or_else(invalid)?;
        let is_same = *cursor.policy == *query.policy
            && cursor.order == query.order
            && *cursor.prefix == *query.prefix;
        if !is_same {
            return Err(QueryError::OtherQuery);
        }
        Ok(Some(cursor.position.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query<'q>(policy: &'q str, cursor: Option<&'q str>) -> KeysQuery<'q> {
        KeysQuery { policy, order: Order::Newest, prefix: b"", cursor, limit: 1 }
    }

    fn position(rank: u64) -> Position {
        Position { rank, key: b"k"[..].into() }
    }

    #[test]
    fn a_cursor_is_valid_for_its_query_in_its_process_until_many_others_follow() {
        let cursors = Cursors::default();
        let first = cursors.add(&query("api", None), position(7));
        let read = |text: &str| cursors.position(&query("api", Some(text)));
        assert_eq!(read(&first), Ok(Some(position(7))));
        assert_eq!(cursors.position(&query("api", None)), Ok(None));
        assert_eq!(cursors.position(&query("other", Some(&first))), Err(QueryError::OtherQuery));
        let restarted = Cursors::default();
        let foreign = restarted.position(&query("api", Some(&first)));
        assert_eq!(foreign, Err(QueryError::ForeignCursor));
        for text in ["", "0", "x", "zzzzzzzz0", "öööööö", &format!("{}ff", &first[..8])] {
            assert!(matches!(read(text), Err(QueryError::Cursor(_))), "{text}");
        }
        for rank in 0..1_024 {
            cursors.add(&query("api", None), position(rank));
        }
        assert_eq!(read(&first), Err(QueryError::ExpiredCursor));
    }
}
