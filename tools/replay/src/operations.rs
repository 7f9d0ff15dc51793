//! The operations in a log that has a column for them, and their parameters.
//!
//! The columns have the names of the fields of the HTTP API: `request_id`, `lease_id`,
//! `reservation_id`, `max_wait` and `for` (both in seconds or with a unit). `charged_at` is the
//! time of the decision that a refund refers to.

use std::fmt;

use tollgate::{Cost, Id, Micros, Operation, Timestamp, parse_duration};

use crate::log::{Line, TimeUnit, parse_time};
use crate::request::Skip;

/// The operation of line `number`; `check` by default.
///
/// # Errors
/// A parameter is missing or invalid.
pub fn operation(line: &Line<'_>, number: u64) -> Result<Operation, Skip> {
    let name = text(line, "verb")?.unwrap_or("check");
    // A lease or a reservation that no other line refers to gets a unique id.
    let own = Id::from_u128(u128::from(number));
    let id = |field| -> Result<Option<Id>, Skip> {
        let text = text(line, field)?;
        text.map(|text| text.parse().map_err(|error| invalid(field, text, &error))).transpose()
    };
    let named = |field| {
        id(field)?.ok_or_else(|| Skip::Invalid(format!("{field} is missing; {name} needs it")))
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
        "settle" => Operation::Settle,
        "reset" => Operation::Reset,
        "block" => Operation::Block { span: duration(line, "for")? },
        "unblock" => Operation::Unblock,
        "acquire" => Operation::Acquire { lease: id("lease_id")?.unwrap_or(own) },
        "renew" => Operation::Renew { lease: named("lease_id")? },
        "release" => Operation::Release { lease: named("lease_id")? },
        _ => {
            return Err(invalid(
                "verb",
                name,
                &"expected check, peek, settle, take, reserve, cancel, refund, penalize, reset, \
                  block, unblock, acquire, renew or release",
            ));
        }
    })
}

/// The cost of a line, 1 by default.
///
/// # Errors
/// The cost is too large.
pub fn cost(line: &Line<'_>) -> Result<Cost, Skip> {
    let units = line.cost.unwrap_or(1);
    Cost::new(units).ok_or_else(|| {
        invalid("cost", &units.to_string(), &format_args!("at most {}", Cost::MAX.get()))
    })
}

/// The idempotency key of a line.
pub fn request_id(line: &Line<'_>) -> Option<Vec<u8>> {
    line.field("request_id").filter(|field| !field.is_empty()).map(<[u8]>::to_vec)
}

fn text<'a>(line: &Line<'a>, field: &'static str) -> Result<Option<&'a str>, Skip> {
    let Some(bytes) = line.field(field).filter(|field| !field.is_empty()) else { return Ok(None) };
    let text = std::str::from_utf8(bytes);
    text.map(Some).map_err(|_| Skip::Invalid(format!("{field} is not text; use UTF-8")))
}

fn duration(line: &Line<'_>, field: &'static str) -> Result<Option<Micros>, Skip> {
    let Some(text) = text(line, field)? else { return Ok(None) };
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        // As in the HTTP API, a number is in seconds.
        let read = parse_time(text.as_bytes(), TimeUnit::Seconds);
        let read = read.map(|time| Some(Micros::new(time.as_micros())));
        return read.map_err(|_| invalid(field, text, &"use seconds, or a duration such as 10min"));
    }
    parse_duration(text).map(Some).map_err(|error| invalid(field, text, &error))
}

fn moment(line: &Line<'_>, field: &'static str) -> Result<Option<Timestamp>, Skip> {
    let Some(text) = text(line, field)? else { return Ok(None) };
    let read = parse_time(text.as_bytes(), TimeUnit::Seconds);
    read.map(Some).map_err(|error| invalid(field, text, &error))
}

fn invalid(field: &str, value: &str, hint: &dyn fmt::Display) -> Skip {
    let shown = crate::log::printable(value.as_bytes());
    Skip::Invalid(format!("invalid {field} {shown}: {hint}"))
}
