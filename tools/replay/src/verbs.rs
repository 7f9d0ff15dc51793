//! The verbs of a log that has a column of them, and what goes with each.
//!
//! The columns are called as the fields of the daemon's interface: `request_id`, `lease_id`,
//! `reservation_id`, `max_wait` and `for`, the last two in seconds or with a unit; `charged_at` is the time of the
//! decision that a refund is of.

use std::fmt;

use tollgate::{Cost, Id, Micros, Operation, Timestamp, parse_duration};

use crate::ask::NotAsked;
use crate::log::{Line, TimeUnit, time_in_text};

/// The fields beside the key and the cost that a verb may have.
pub const FIELDS: [&str; 7] =
    ["verb", "request_id", "lease_id", "reservation_id", "max_wait", "for", "charged_at"];

/// What a line asks by its columns, `check` if it has none; the line being the `number`th of all.
///
/// # Errors
/// A column is missing or cannot be read.
pub fn verb(line: &Line<'_>, number: u64) -> Result<Operation, NotAsked> {
    let name = text(line, "verb")?.unwrap_or("check");
    // A lease or a reservation that nobody names again needs no name, but one of its own.
    let own = Id::from_u128(u128::from(number));
    let id = |field| -> Result<Option<Id>, NotAsked> {
        let text = text(line, field)?;
        text.map(|text| text.parse().map_err(|error| broken(field, text, &error))).transpose()
    };
    let named = |field| {
        id(field)?.ok_or_else(|| {
            NotAsked::Broken(format!("{field} is missing; {name} says there which one it means"))
        })
    };
    Ok(match name {
        "check" => Operation::Check { lease: Some(id("lease_id")?.unwrap_or(own)) },
        "peek" => Operation::Peek,
        "take" => Operation::Take,
        "reserve" => {
            let max_wait = duration(line, "max_wait")?.unwrap_or(Micros::new(u64::MAX));
            Operation::Reserve { id: id("reservation_id")?.unwrap_or(own), max_wait }
        }
        "cancel" => Operation::Cancel { id: named("reservation_id")? },
        "refund" => Operation::Refund { time: moment(line, "charged_at")? },
        "penalize" => Operation::Penalize,
        "reset" => Operation::Reset,
        "block" => Operation::Block { span: duration(line, "for")? },
        "unblock" => Operation::Unblock,
        "acquire" => Operation::Acquire { lease: id("lease_id")?.unwrap_or(own) },
        "renew" => Operation::Renew { lease: named("lease_id")? },
        "release" => Operation::Release { lease: named("lease_id")? },
        _ => {
            return Err(broken(
                "verb",
                name,
                &"write check, peek, take, reserve, cancel, refund, penalize, reset, block, unblock, \
                  acquire, renew or release",
            ));
        }
    })
}

/// What a line costs, 1 if it does not say.
///
/// # Errors
/// It is more than a cost can be.
pub fn cost(line: &Line<'_>) -> Result<Cost, NotAsked> {
    let units = line.cost.unwrap_or(1);
    Cost::new(units).ok_or_else(|| {
        broken("cost", &units.to_string(), &format_args!("write at most {}", Cost::MAX.get()))
    })
}

/// What names the request of a line.
#[must_use]
pub fn request_id(line: &Line<'_>) -> Option<Vec<u8>> {
    line.field("request_id").filter(|field| !field.is_empty()).map(<[u8]>::to_vec)
}

fn text<'a>(line: &Line<'a>, field: &'static str) -> Result<Option<&'a str>, NotAsked> {
    let Some(bytes) = line.field(field).filter(|field| !field.is_empty()) else { return Ok(None) };
    let text = std::str::from_utf8(bytes);
    text.map(Some).map_err(|_| NotAsked::Broken(format!("{field} is no text; write it in UTF-8")))
}

fn duration(line: &Line<'_>, field: &'static str) -> Result<Option<Micros>, NotAsked> {
    let Some(text) = text(line, field)? else { return Ok(None) };
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        // As in the daemon's interface, a number is seconds.
        let read = time_in_text(text.as_bytes(), TimeUnit::Seconds);
        let read = read.map(|x| Some(Micros::new(x.as_micros())));
        return read
            .map_err(|_| broken(field, text, &"write seconds, or a duration such as 10min"));
    }
    parse_duration(text).map(Some).map_err(|error| broken(field, text, &error))
}

fn moment(line: &Line<'_>, field: &'static str) -> Result<Option<Timestamp>, NotAsked> {
    let Some(text) = text(line, field)? else { return Ok(None) };
    let read = time_in_text(text.as_bytes(), TimeUnit::Seconds);
    read.map(Some).map_err(|error| broken(field, text, &error))
}

fn broken(field: &str, value: &str, remedy: &dyn fmt::Display) -> NotAsked {
    let shown = crate::log::shown(value.as_bytes());
    NotAsked::Broken(format!("{field} is {shown}: {remedy}"))
}
