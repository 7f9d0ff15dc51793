//! Numbers, times and keys as text, formatted alike in the text report, HTML and pictures.

use jiff::tz::Offset;
use tollgate::{Micros, Timestamp};

/// Durations in microseconds.
pub(crate) const MILLISECOND: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MILLISECOND;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;
pub(crate) const WEEK: u64 = 7 * DAY;
/// The first Monday after the epoch, the start of weeks.
pub(crate) const MONDAY: u64 = 4 * DAY;

/// The units of durations, longest first.
const UNITS: &[(u64, &str)] = &[
    (WEEK, "w"),
    (DAY, "d"),
    (HOUR, "h"),
    (MINUTE, "min"),
    (SECOND, "s"),
    (MILLISECOND, "ms"),
    (1, "µs"),
];

/// How many bytes of a key are shown before `…`.
const MAX_SHOWN: usize = 256;

/// An integer with thousands separators: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with its noun: `1 key`, `12,345 keys`.
pub(crate) fn counted(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", grouped(number))
}

/// A percentage to one decimal: `61.7 %`. Only an exact 0 or 1 is shown as `0 %` or `100 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    if part == whole {
        return "100 %".to_owned();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    let tenths = (part * 1_000 + whole / 2) / whole;
    match tenths {
        0 => "< 0.1 %".to_owned(),
        1_000 if part < whole => "> 99.9 %".to_owned(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// A ratio to one decimal: `2.0`.
pub(crate) fn ratio(amount: u64, of: u64) -> String {
    let of = u128::from(of.max(1));
    let tenths = (u128::from(amount) * 10 + of / 2) / of;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Millionths as a percentage: `0.1 %`.
pub(crate) fn ppm(millionths: u32) -> String {
    let (whole, rest) = (millionths / 10_000, millionths % 10_000);
    if rest == 0 {
        return format!("{whole} %");
    }
    format!("{whole}.{} %", format!("{rest:04}").trim_end_matches('0'))
}

/// A duration in its two largest units, rounded down: `1 min 30 s`, `250 ms`.
pub(crate) fn length(length: Micros) -> String {
    let mut parts = UNITS.iter().enumerate().filter(|(_, (unit, word))| {
        // Weeks are only for windows.
        *word != "w" && length.get() >= *unit
    });
    let Some((at, (unit, word))) = parts.next() else {
        return "0 s".to_owned();
    };
    let (whole, rest) = (length.get() / unit, length.get() % unit);
    match UNITS.get(at + 1) {
        Some((next, next_word)) if rest >= *next => {
            format!("{} {word} {} {next_word}", grouped(whole), rest / next)
        }
        _ => format!("{} {word}", grouped(whole)),
    }
}

/// A window in the largest unit that divides it: `10 min`.
pub(crate) fn window(window: Micros) -> String {
    let window = window.get();
    let unit = UNITS.iter().find(|(unit, _)| window >= *unit && window.is_multiple_of(*unit));
    match unit {
        Some((unit, word)) => format!("{} {word}", grouped(window / unit)),
        None => "0 s".to_owned(),
    }
}

/// A window after "per" or "any", where `1 s` is `s`: `s`, `10 min`.
pub(crate) fn per(length: Micros) -> String {
    let text = window(length);
    text.strip_prefix("1 ").map_or_else(|| text.clone(), ToOwned::to_owned)
}

/// A time in UTC with the necessary decimals: `2025-11-20 14:46:40.25`.
pub(crate) fn moment(time: Timestamp) -> String {
    let Some(civil) = civil(time.as_micros()) else {
        return time.to_string();
    };
    let mut text = civil.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let rest = time.as_micros() % 1_000_000;
    if rest > 0 {
        text.push('.');
        text.push_str(format!("{rest:06}").trim_end_matches('0'));
    }
    text
}

/// A time in UTC, rounded down to the second.
pub(crate) fn second(time: Timestamp) -> String {
    moment(Timestamp::from_micros(time.as_micros() / 1_000_000 * 1_000_000))
}

/// The calendar date and time in UTC of microseconds since the epoch.
pub(crate) fn civil(micros: u64) -> Option<jiff::civil::DateTime> {
    let timestamp = jiff::Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()?;
    Some(Offset::UTC.to_datetime(timestamp))
}

/// A key in one line. Bytes that are not printable text, characters that change the direction of
/// text, and backslashes are escaped.
pub(crate) fn key(key: &[u8]) -> String {
    let (first, rest) = key.split_at(key.len().min(MAX_SHOWN));
    let mut shown = String::with_capacity(first.len());
    for chunk in first.utf8_chunks() {
        shown.push_str(&text(&chunk.valid().replace('\\', "\\\\")));
        shown.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    if !rest.is_empty() {
        shown.push('…');
    }
    shown
}

/// A text in one line of any length; what is not printable is escaped.
pub(crate) fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\'' | '\\' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
    }
    shown
}

/// Escapes a text for XML and HTML, in content and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Characters that XML 1.0 cannot represent.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")]
        {
            assert_eq!(grouped(number), expected);
        }
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(2_000, "key"), "2,000 keys");
    }

    #[test]
    fn only_an_exact_share_is_0_or_100_percent() {
        for (part, whole, expected) in [
            (0, 0, "0 %"),
            (0, 7, "0 %"),
            (7, 7, "100 %"),
            (12_345, 20_000, "61.7 %"),
            (1, 1_000_000, "< 0.1 %"),
            (999_999, 1_000_000, "> 99.9 %"),
            (u64::MAX - 1, u64::MAX, "> 99.9 %"),
            (30, 20, "150.0 %"),
        ] {
            assert_eq!(share(part, whole), expected, "{part} of {whole}");
        }
        for (millionths, expected) in [(1_000, "0.1 %"), (1, "0.0001 %"), (50_000, "5 %")] {
            assert_eq!(ppm(millionths), expected);
        }
    }

    #[test]
    fn durations_have_two_units_and_windows_one() {
        for (micros, expected_length, expected_window) in [
            (0, "0 s", "0 s"),
            (1, "1 µs", "1 µs"),
            (250_000, "250 ms", "250 ms"),
            (90_000_000, "1 min 30 s", "90 s"),
            (3_600_000_000, "1 h", "1 h"),
            (3_600_000_001, "1 h", "3,600,000,001 µs"),
            (8 * DAY, "8 d", "8 d"),
            (14 * DAY, "14 d", "2 w"),
        ] {
            assert_eq!(length(Micros::new(micros)), expected_length, "{micros}");
            assert_eq!(window(Micros::new(micros)), expected_window, "{micros}");
        }
        assert_eq!(per(Micros::from_secs(1)), "s");
        assert_eq!(per(Micros::from_secs(10)), "10 s");
    }

    #[test]
    fn times_are_in_utc() {
        for (micros, expected) in [
            (0, "1970-01-01 00:00:00"),
            (1_763_650_000_250_000, "2025-11-20 14:46:40.25"),
            (Timestamp::MAX.as_micros(), "2239-05-10 15:06:40"),
        ] {
            assert_eq!(moment(Timestamp::from_micros(micros)), expected);
        }
    }

    #[test]
    fn a_key_is_one_line_whatever_its_bytes() {
        for (bytes, expected) in [
            (&b"user:42"[..], "user:42"),
            (b"a\nb\x1b[31m\0", "a\\nb\\u{1b}[31m\\0"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("é\u{202e}\u{ffff}".as_bytes(), "é\\u{202e}\\u{ffff}"),
            (b"it's \"x\" \\", "it's \"x\" \\\\"),
        ] {
            assert_eq!(key(bytes), expected);
        }
        assert_eq!(text("a\\b \u{7}"), "a\\b \\u{7}");
        assert_eq!(key(&[b'x'; 300]).chars().count(), 257);
    }

    #[test]
    fn markup_in_a_text_is_escaped() {
        for (text, expected) in [
            ("<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"),
            ("a\" onload=\"b&", "a&quot; onload=&quot;b&amp;"),
            ("\0\u{1b}\u{ffff}\n", "\u{fffd}\u{fffd}\u{fffd}\n"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
