//! The query of an address.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Names and values, percent-decoded into any bytes; `+` is a space.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    query.split('&').filter(|it| !it.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &str) -> Cow<'_, [u8]> {
    if text.contains('+') {
        let text = text.replace('+', " ");
        return Cow::Owned(percent_decode(text.as_bytes()).collect());
    }
    percent_decode(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_can_be_written() {
        let read: Vec<_> = pairs("policy=api&key=a%00%ff+b%2B&&empty").collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"policy", b"api"), (b"key", b"a\0\xff b+"), (b"empty", b"")];
        assert_eq!(read.len(), 3);
        for ((name, value), expected) in read.iter().zip(expected) {
            assert_eq!((&**name, &**value), expected);
        }
    }
}
