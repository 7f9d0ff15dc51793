//! Escapes in access logs, and the comparison of field names.

/// A byte order mark, which some editors put before a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Appends `raw` to `text` and resolves the escapes `\"`, `\\`, `\n` and similar, and `\xHH`. Other
/// backslashes remain.
pub(super) fn unescape(raw: &[u8], text: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        text.extend_from_slice(before);
        let (byte, length) = escaped(escape);
        text.push(byte);
        rest = escape.get(length..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
}

/// The byte of the escape at the start of `text`, and the length of the escape.
fn escaped(text: &[u8]) -> (u8, usize) {
    match text {
        [_, b'x', high, low, ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => (high << 4 | low, 4),
            _ => (b'\\', 1),
        },
        [_, b'"', ..] => (b'"', 2),
        [_, b'\\', ..] => (b'\\', 2),
        [_, b'n', ..] => (b'\n', 2),
        [_, b'r', ..] => (b'\r', 2),
        [_, b't', ..] => (b'\t', 2),
        [_, b'b', ..] => (0x08, 2),
        [_, b'f', ..] => (0x0C, 2),
        [_, b'v', ..] => (0x0B, 2),
        _ => (b'\\', 1),
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Whether two field names are equal without regard to case, where `-` equals `_`.
pub(super) fn same_name(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| fold(*one) == fold(*other))
}

/// Normalises a letter of a name for comparison.
pub(super) fn fold(letter: u8) -> u8 {
    if letter == b'-' { b'_' } else { letter.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_both_servers_are_resolved() {
        let check = |raw: &str, expected: &[u8]| {
            let mut text = Vec::new();
            unescape(raw.as_bytes(), &mut text);
            assert_eq!(text, expected, "{raw}");
        };
        check("plain", b"plain");
        check(r#"a\"b\\c"#, br#"a"b\c"#);
        check(r"\x16\x03\xfF!", b"\x16\x03\xFF!");
        check(r"\t\n\r\b\f\v", b"\t\n\r\x08\x0C\x0B");
        check(r"\xg0\x1", br"\xg0\x1");
        check(r"end\", br"end\");
    }

    #[test]
    fn names_are_compared_without_regard_to_spelling() {
        assert!(same_name(b"User-Agent", b"user_agent"));
        assert!(!same_name(b"user", b"user_"));
    }
}
