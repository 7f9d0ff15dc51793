//! The query of an address.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Names and values, percent-decoded into any bytes; `+` is a space.
pub fn pairs(query: &[u8]) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    query.split(|query| *query == b'&').filter(|part| !part.is_empty()).map(|pair| {
        let at = pair.iter().position(|pair| *pair == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at(at);
        (decoded(name), decoded(value.get(1..).unwrap_or_default()))
    })
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
    fn any_bytes_can_be_written() {
        let read: Vec<_> = pairs(b"policy=api&key=a%00%ff+b%2B&&empty").collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"policy", b"api"), (b"key", b"a\0\xff b+"), (b"empty", b"")];
        assert_eq!(read.len(), 3);
        for ((name, value), expected) in read.iter().zip(expected) {
            assert_eq!((&**name, &**value), expected);
        }
    }
}
