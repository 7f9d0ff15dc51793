//! Times and durations of rows.

use tollgate_algorithms::{Micros, Timestamp};

use super::words::Mistake;

const DAY: i64 = 86_400_000_000;

/// Sorted so that `ms` and `min` come before `m`.
const UNITS: [(&str, i64); 9] = [
    ("min", 60_000_000),
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", DAY),
    ("w", 7 * DAY),
    ("y", 365 * DAY),
];

/// A time: a sum of terms relative to the base. It may start with a time on the day of the base, or with
/// an absolute time.
pub(super) fn moment(text: &str, base: Timestamp) -> Result<Timestamp, Mistake> {
    let (start, rest) = match text.find('Z').map(|at| text.split_at(at + 1)) {
        Some((date, rest)) => (date_time(date)?, rest),
        None => {
            let base = i64::try_from(base.as_micros()).map_err(|error| error.to_string())?;
            let end = text.find(['+', '-']).unwrap_or(text.len());
            match text.split_at(end) {
                (clock, rest) if clock.contains(':') => {
                    (base - base.rem_euclid(DAY) + time_of_day(clock)?, rest)
                }
                _ => (base, text),
            }
        }
    };
    let offset = if rest.is_empty() { 0 } else { sum(rest)? };
    let micros = start.checked_add(offset).and_then(|micros| u64::try_from(micros).ok());
    micros.map(Timestamp::from_micros).ok_or_else(|| format!("{text:?} is before the epoch"))
}

/// A duration: a sum of terms that is not negative.
pub(super) fn span(text: &str) -> Result<Micros, Mistake> {
    let micros = u64::try_from(sum(text)?).map_err(|_| format!("{text:?} is negative"))?;
    Ok(Micros::new(micros))
}

/// `2026-11-20T10:59:00Z` in µs since the epoch.
fn date_time(text: &str) -> Result<i64, Mistake> {
    let time: jiff::Timestamp = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    Ok(time.as_microsecond())
}

/// `10:59:58.5` in µs since midnight.
fn time_of_day(text: &str) -> Result<i64, Mistake> {
    let time: jiff::civil::Time = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    let seconds = (i64::from(time.hour()) * 60 + i64::from(time.minute())) * 60;
    let seconds = seconds + i64::from(time.second());
    Ok(seconds * 1_000_000 + i64::from(time.subsec_nanosecond()) / 1_000)
}

fn sum(text: &str) -> Result<i64, Mistake> {
    let (mut total, mut rest, mut sign) = (0_i64, text, 1);
    if rest.is_empty() {
        return Err("a time is missing".into());
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['+', '-']) {
            sign = if rest.starts_with('-') { -1 } else { 1 };
            rest = after;
        }
        let (micros, after) = term(rest).ok_or_else(|| format!("{text:?} is not a time"))?;
        total = total.checked_add(sign * micros).ok_or_else(|| format!("{text:?} is too long"))?;
        rest = after;
    }
    Ok(total)
}

/// A number with its unit, by default seconds, and the rest of the text.
fn term(text: &str) -> Option<(i64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let unit = UNITS.iter().find_map(|(name, us)| Some((*us, rest.strip_prefix(name)?)));
    let (unit, rest) = match unit {
        Some(unit) => unit,
        None if rest.is_empty() || rest.starts_with(['+', '-']) => (1_000_000, rest),
        None => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_i64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let fraction = if decimals.is_empty() { 0 } else { decimals.parse::<i64>().ok()? };
    let fraction = fraction.checked_mul(unit)?;
    // A fraction of a microsecond would be rounded silently.
    if fraction % scale != 0 {
        return None;
    }
    let whole = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    Some((whole.checked_add(fraction / scale)?, rest))
}
