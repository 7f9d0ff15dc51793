//! Inline commands: words on a line, with the quoting rules of Redis.

/// Quotes that do not end, or do not end a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unbalanced;

/// The words of a line: `add` is told where in `unquoted` each stands.
pub(super) fn words(
    line: &[u8],
    unquoted: &mut Vec<u8>,
    mut add: impl FnMut(usize, usize),
) -> Result<(), Unbalanced> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let start = unquoted.len();
        rest = word(rest, unquoted)?.trim_ascii_start();
        add(start, unquoted.len());
    }
    Ok(())
}

/// Reads a word; what follows it.
fn word<'a>(mut rest: &'a [u8], unquoted: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    while let [byte, after @ ..] = rest {
        match byte {
            b'"' => rest = ended(double(after, unquoted)?)?,
            b'\'' => rest = ended(single(after, unquoted)?)?,
            byte if byte.is_ascii_whitespace() => return Ok(rest),
            byte => {
                unquoted.push(*byte);
                rest = after;
                continue;
            }
        }
        return Ok(rest);
    }
    Ok(rest)
}

/// What follows a closing quote is a space or nothing.
fn ended(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(Unbalanced),
        _ => Ok(rest),
    }
}

/// Reads to the closing quote; `\n`, `\r`, `\t`, `\b`, `\a` and `\xhh` stand for bytes.
fn double<'a>(mut rest: &'a [u8], unquoted: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                unquoted.push(digit(*high) << 4 | digit(*low));
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

/// Reads to the closing quote; `\'` stands for a quote.
fn single<'a>(mut rest: &'a [u8], unquoted: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
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

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        b'a'..=b'f' => hex - b'a' + 10,
        _ => hex.saturating_sub(b'A') + 10,
    }
}
