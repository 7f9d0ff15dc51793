//! Inline commands: words on a line, with the quoting rules of Redis.

/// A quote that has no closing quote, or a closing quote that does not end a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unbalanced;

/// Splits a line into words. Appends each to `unquoted`, and calls `add` with its start and its end
/// there.
pub(super) fn split(
    line: &[u8],
    unquoted: &mut Vec<u8>,
    mut add: impl FnMut(usize, usize),
) -> Result<(), Unbalanced> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let start = unquoted.len();
        rest = parse_word(rest, unquoted)?.trim_ascii_start();
        add(start, unquoted.len());
    }
    Ok(())
}

/// Parses a word. Returns the bytes after it.
fn parse_word<'a>(mut rest: &'a [u8], unquoted: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    while let [byte, after @ ..] = rest {
        match byte {
            b'"' => return end_word(parse_double_quoted(after, unquoted)?),
            b'\'' => return end_word(parse_single_quoted(after, unquoted)?),
            byte if byte.is_ascii_whitespace() => return Ok(rest),
            byte => {
                unquoted.push(*byte);
                rest = after;
            }
        }
    }
    Ok(rest)
}

/// Checks that a space or the end of the line follows a closing quote.
fn end_word(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(Unbalanced),
        _ => Ok(rest),
    }
}

/// Parses up to the closing quote, with the escapes `\n`, `\r`, `\t`, `\b`, `\a` and `\xhh`.
/// Returns the bytes after it.
fn parse_double_quoted<'a>(
    mut rest: &'a [u8],
    unquoted: &mut Vec<u8>,
) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                unquoted.push(hex_value(*high) << 4 | hex_value(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                unquoted.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                unquoted.push(*byte);
                after
            }
            [] => return Err(Unbalanced),
        };
    }
}

/// Parses up to the closing quote, with the escape `\'`. Returns the bytes after it.
fn parse_single_quoted<'a>(
    mut rest: &'a [u8],
    unquoted: &mut Vec<u8>,
) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'\'', after @ ..] => return Ok(after),
            [b'\\', b'\'', after @ ..] => {
                unquoted.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                unquoted.push(*byte);
                after
            }
            [] => return Err(Unbalanced),
        };
    }
}

/// The value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => unreachable!("the caller checked that it is a hexadecimal digit"),
    }
}
