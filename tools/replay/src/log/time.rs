//! Parses times.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use tollgate::Timestamp;

use super::error::LineError;
use super::fields::TimeUnit;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// `10/Oct/2000:13:55:36 -0700`.
pub(super) const DATE_BYTES: usize = 26;
/// `10/Oct/2000:13:55`.
const MINUTE_BYTES: usize = 17;

/// The time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The time.
    pub at: Timestamp,
    /// Whether the log has a resolution of one second, so that the request happened during the
    /// second that starts at `at`.
    pub whole_second: bool,
}

/// The dates of an access log. Consecutive lines mostly have the same second or minute, so both are
/// cached.
#[derive(Clone, Debug)]
pub(super) struct Dates {
    date: [u8; DATE_BYTES],
    at: Timestamp,
    /// The start of the minute of `date`, in seconds since the epoch.
    minute: i64,
}

impl Default for Dates {
    fn default() -> Self {
        Dates { date: *b"01/Jan/1970:00:00:00 +0000", at: Timestamp::EPOCH, minute: 0 }
    }
}

impl Dates {
    /// Parses the time in the brackets of an access log.
    pub(super) fn parse(&mut self, text: &[u8]) -> Result<Stamp, LineError> {
        match <&[u8; DATE_BYTES]>::try_from(text) {
            Ok(date) if *date == self.date => Ok(Stamp { at: self.at, whole_second: true }),
            Ok(date) => self.parse_whole(date).or_else(|error| other(text).ok_or(error)),
            Err(_) => other(text).ok_or(LineError::Time),
        }
    }

    fn parse_whole(&mut self, date: &[u8; DATE_BYTES]) -> Result<Stamp, LineError> {
        let same = |from: usize, to: usize| date.get(from..to) == self.date.get(from..to);
        let minute = if same(0, MINUTE_BYTES) && same(20, DATE_BYTES) {
            self.minute
        } else {
            minute(date).ok_or(LineError::Time)?
        };
        let second = seconds(&date[MINUTE_BYTES..20]);
        let second = second.filter(|_| date.get(20) == Some(&b' ')).ok_or(LineError::Time)?;
        let at = timestamp(minute.saturating_add(second), 0)?;
        *self = Dates { date: *date, at, minute };
        Ok(Stamp { at, whole_second: true })
    }
}

/// Parses `:36`; a leap second, 60, counts as 59.
fn seconds(text: &[u8]) -> Option<i64> {
    let [b':', tens, ones] = *text else { return None };
    let second = i64::try_from(number(&[tens, ones])?).ok()?;
    (second <= 60).then_some(second.min(59))
}

/// The start of the minute of a date, in seconds since the epoch.
fn minute(date: &[u8; DATE_BYTES]) -> Option<i64> {
    let (day, [b'/', month @ .., b'/'], year, [b':', hour @ ..], [b':', minute @ ..]) =
        (date.get(0..2)?, date.get(2..7)?, date.get(7..11)?, date.get(11..14)?, date.get(14..17)?)
    else {
        return None;
    };
    let month = (1..).zip(MONTHS).find(|(_, name)| month == &name[..])?.0;
    let offset = offset(date.get(21..)?)?;
    let small = |digits: &[u8]| i8::try_from(number(digits)?).ok();
    let year = i16::try_from(number(year)?).ok()?;
    let date = DateTime::new(year, month, small(day)?, small(hour)?, small(minute)?, 0, 0).ok()?;
    Some(offset.to_timestamp(date).ok()?.as_second())
}

/// `-0700`.
fn offset(text: &[u8]) -> Option<Offset> {
    let (sign, digits) = text.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = (number(digits.get(..2)?)?, number(digits.get(2..4)?)?);
    let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok().filter(|_| minutes < 60)?;
    Offset::from_seconds(sign * seconds).ok()
}

/// Parses other forms: a fraction after the second, or RFC 3339.
fn other(text: &[u8]) -> Option<Stamp> {
    let Some(b".") = text.get(20..21) else {
        let whole_second = !text.contains(&b'.');
        return Some(Stamp { at: rfc_3339(text).ok()?, whole_second });
    };
    let digits = text.get(21..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, zone) = text.get(21..)?.split_at_checked(digits)?;
    let date = [text.get(..20)?, zone].concat();
    let whole = Dates::default().parse_whole(&date.try_into().ok()?).ok()?;
    let at = whole.at.as_micros().checked_add(micros_of_fraction(fraction))?;
    Some(Stamp { at: Timestamp::from_micros(at), whole_second: false })
}

/// Parses a time: a number in `unit` since the epoch, RFC 3339, or the date of an access log.
pub(crate) fn parse(text: &[u8], unit: TimeUnit) -> Result<Timestamp, LineError> {
    let text = text.trim_ascii();
    match text.first() {
        None => Err(LineError::NoTime),
        Some(b'-') if text.len() == 1 => Err(LineError::NoTime),
        _ if text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') => decimal(text, unit),
        Some(b'-') if decimal(text.get(1..).unwrap_or_default(), unit).is_ok() => {
            Err(LineError::BeforeEpoch)
        }
        _ => rfc_3339(text).or_else(|error| {
            let date =
                text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(text);
            let date = date.try_into().map_err(|_| error)?;
            Ok(Dates::default().parse_whole(date)?.at)
        }),
    }
}

/// Parses `1763650000.123456` in its unit, exactly; digits below a microsecond are dropped.
fn decimal(text: &[u8], unit: TimeUnit) -> Result<Timestamp, LineError> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (whole, fraction) = text.split_at_checked(point).ok_or(LineError::Time)?;
    let fraction = fraction.strip_prefix(b".").unwrap_or_default();
    let are_digits = |x: &[u8]| x.iter().all(u8::is_ascii_digit);
    if whole.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return Err(LineError::Time);
    }
    let micros = micros_of_fraction(fraction);
    let in_micros = number(whole).and_then(|whole| match unit {
        TimeUnit::Seconds => whole.checked_mul(1_000_000)?.checked_add(micros),
        TimeUnit::Millis => whole.checked_mul(1_000)?.checked_add(micros / 1_000),
        TimeUnit::Micros => Some(whole),
        TimeUnit::Nanos => Some(whole / 1_000),
    });
    in_micros.ok_or(LineError::FarFuture).and_then(fits)
}

/// Parses RFC 3339 with any number of decimals; those below a microsecond are dropped.
fn rfc_3339(text: &[u8]) -> Result<Timestamp, LineError> {
    let text = std::str::from_utf8(text).map_err(|_| LineError::Time)?;
    let at: jiff::Timestamp = match text.parse() {
        Ok(at) => at,
        // The form of `date +%z`, without a colon in the offset.
        Err(_) => jiff::fmt::strtime::parse("%Y-%m-%dT%H:%M:%S%.f%z", text)
            .and_then(|time| time.to_timestamp())
            .map_err(|_| LineError::Time)?,
    };
    timestamp(at.as_second(), i64::from(at.subsec_nanosecond()) / 1_000)
}

fn timestamp(seconds: i64, micros: i64) -> Result<Timestamp, LineError> {
    let in_micros = seconds.checked_mul(1_000_000).and_then(|whole| whole.checked_add(micros));
    let in_micros = in_micros.ok_or(LineError::FarFuture)?;
    u64::try_from(in_micros).map_err(|_| LineError::BeforeEpoch).and_then(fits)
}

fn fits(micros: u64) -> Result<Timestamp, LineError> {
    let at = Timestamp::from_micros(micros);
    if at.as_micros() == micros { Ok(at) } else { Err(LineError::FarFuture) }
}

/// The microseconds of the digits after a decimal point.
fn micros_of_fraction(digits: &[u8]) -> u64 {
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    padded.fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0').min(9)))
}

pub(super) fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS_LOG_DATES: [(&str, &str); 14] = [
        ("10/Oct/2000:13:55:36 -0700", "971211336 whole"),
        ("10/Oct/2000:20:55:36 +0000", "971211336 whole"),
        ("11/Oct/2000:02:25:36 +0530", "971211336 whole"),
        ("31/Dec/2016:23:59:60 +0000", "1483228799 whole"),
        ("29/Feb/2024:00:00:00 +0000", "1709164800 whole"),
        ("10/Oct/2000:13:55:36.25 -0700", "971211336.25"),
        ("10/Oct/2000:13:55:36.1234567 -0700", "971211336.123456"),
        ("2000-10-10T13:55:36-07:00", "971211336 whole"),
        ("2000-10-10T20:55:36.5Z", "971211336.5"),
        ("29/Feb/2023:00:00:00 +0000", "Time"),
        ("10/Okt/2000:13:55:36 -0700", "Time"),
        ("10/Oct/2000:13:55:61 -0700", "Time"),
        ("10/Oct/2000:13:55:36 -0770", "Time"),
        ("31/Dec/1969:23:59:59 +0000", "BeforeEpoch"),
    ];

    #[test]
    fn dates_of_access_logs_are_parsed() {
        let mut dates = Dates::default();
        for round in ["first", "cached"] {
            for (text, expected) in ACCESS_LOG_DATES {
                let found = match dates.parse(text.as_bytes()) {
                    Ok(Stamp { at, whole_second: true }) => format!("{at} whole"),
                    Ok(Stamp { at, whole_second: false }) => at.to_string(),
                    Err(error) => format!("{error:?}"),
                };
                assert_eq!(found, expected, "{text}, {round}");
            }
        }
    }

    #[test]
    fn the_cache_of_dates_is_invisible() {
        let mut dates = Dates::default();
        for (text, expected) in [
            ("10/Oct/2000:13:55:36 -0700", "971211336"),
            ("10/Oct/2000:13:55:37 -0700", "971211337"),
            ("10/Oct/2000:13:55:37 -0800", "971214937"),
            ("10/Oct/2000:13:56:37 -0800", "971214997"),
        ] {
            assert_eq!(dates.parse(text.as_bytes()).unwrap().at.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn times_are_exact() {
        let check = |text: &str, unit: TimeUnit, expected: &str| {
            let found = match parse(text.as_bytes(), unit) {
                Ok(at) => at.to_string(),
                Err(error) => format!("{error:?}"),
            };
            assert_eq!(found, expected, "{text}");
        };
        use TimeUnit::{Micros, Millis, Nanos, Seconds};
        check("1763650000.123456", Seconds, "1763650000.123456");
        check(" 1763650000.1234569 ", Seconds, "1763650000.123456");
        check("0", Seconds, "0");
        check("1763650000123.5", Millis, "1763650000.1235");
        check("1763650000123456", Micros, "1763650000.123456");
        check("1763650000123456789", Nanos, "1763650000.123456");
        check("2025-11-20T14:46:40.123456789Z", Seconds, "1763650000.123456");
        check("2025-11-20t15:46:40+01:00", Seconds, "1763650000");
        check("2025-11-20T15:46:40.5+0100", Seconds, "1763650000.5");
        check("20/Nov/2025:14:46:40 +0000", Seconds, "1763650000");
        check("[20/Nov/2025:14:46:40 +0000]", Seconds, "1763650000");
        check("", Seconds, "NoTime");
        check("-", Seconds, "NoTime");
        check("-1.5", Seconds, "BeforeEpoch");
        check("1969-12-31T23:59:59Z", Seconds, "BeforeEpoch");
        check("1763650000123", Seconds, "FarFuture");
        check("99999999999999999999999999", Seconds, "FarFuture");
        check("1.2.3", Seconds, "Time");
        check(".5", Seconds, "Time");
        check("1e9", Seconds, "Time");
        check("2025-11-20T14:46:40", Seconds, "Time");
        check("soon", Seconds, "Time");
    }
}
