//! The query component of a request target.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Names and values, percent-decoded into bytes; `+` is a space.
pub fn pairs(query: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = split_once(pair, b'=').unwrap_or((pair, b""));
        (decoded(name), decoded(value))
    })
}

/// Splits bytes at the first occurrence of a separator, which is in neither part.
pub(super) fn split_once(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let mut parts = bytes.splitn(2, |byte| *byte == separator);
    Some((parts.next()?, parts.next()?))
}

fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if text.contains(&b'+') {
        let space = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
        let text: Vec<_> = text.iter().map(space).collect();
        return Cow::Owned(percent_decode(&text).collect());
    }
    percent_decode(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_percent_decoded_into_bytes() {
        let read: Vec<_> = pairs(b"policy=api&key=a%00%ff+b%2B&&empty").collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"policy", b"api"), (b"key", b"a\0\xff b+"), (b"empty", b"")];
        assert_eq!(read.len(), 3);
        for ((name, value), expected) in read.iter().zip(expected) {
            assert_eq!((&**name, &**value), expected);
        }
    }
}
