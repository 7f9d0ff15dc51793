//! The elements of the header `Forwarded` (RFC 7239), read from the right.

use std::borrow::Cow;

/// Splits at a separator outside quoted strings, from the right. The rightmost parts, which trusted
/// proxies wrote, do not depend on quotes that a client left open further to the left.
pub(crate) fn rsplit_unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut is_quoted = false;
        let at = (0..text.len()).rev().find(|index| {
            is_quoted ^= is_quote(text, *index);
            !is_quoted && text[*index] == separator
        });
        rest = at.map(|at| &text[..at]);
        Some(at.map_or(text, |at| &text[at + 1..]))
    })
}

/// Whether the byte at an index begins or ends a quoted string.
fn is_quote(text: &[u8], index: usize) -> bool {
    let backslashes = text[..index].iter().rev().take_while(|byte| **byte == b'\\').count();
    text[index] == b'"' && backslashes % 2 == 0
}

/// The value of the only parameter `for` of an element.
pub(crate) fn node(element: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut nodes = rsplit_unquoted(element, b';').filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        pair[..at].trim_ascii().eq_ignore_ascii_case(b"for").then(|| pair[at + 1..].trim_ascii())
    });
    let node = nodes.next()?;
    if nodes.next().is_some() {
        return None;
    }
    match node {
        [b'"', quoted @ .., b'"'] => Some(unescaped(quoted)),
        _ => Some(Cow::Borrowed(node)),
    }
}

fn unescaped(quoted: &[u8]) -> Cow<'_, [u8]> {
    if !quoted.contains(&b'\\') {
        return Cow::Borrowed(quoted);
    }
    let mut bytes = quoted.iter();
    let mut text = Vec::with_capacity(quoted.len());
    while let Some(byte) = bytes.next() {
        text.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_split_from_the_right() {
        for (text, expected) in [
            ("", &[""][..]),
            ("a", &["a"]),
            ("a,b", &["b", "a"]),
            ("a,\"b,c\",d", &["d", "\"b,c\"", "a"]),
            (r#"a,"b\",c""#, &[r#""b\",c""#, "a"]),
            (r#"a,"b\\",c"#, &["c", r#""b\\""#, "a"]),
            // A client's open quote does not hide the element of the proxy.
            ("for=\"x, for=1.2.3.4", &[" for=1.2.3.4", "for=\"x"]),
        ] {
            let parts: Vec<_> = rsplit_unquoted(text.as_bytes(), b',').collect();
            let expected: Vec<_> = expected.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(parts, expected, "{text}");
        }
    }

    #[test]
    fn node_is_the_only_for_parameter() {
        for (element, expected) in [
            ("for=192.0.2.43", Some("192.0.2.43")),
            (" For=192.0.2.43 ;proto=https; by=203.0.113.43", Some("192.0.2.43")),
            (r#"by="x;for=1.1.1.1";for="[2001:db8::1]:4711""#, Some("[2001:db8::1]:4711")),
            (r#"for="\1.2.3.4""#, Some("1.2.3.4")),
            ("for=_hidden", Some("_hidden")),
            ("for=", Some("")),
            ("proto=https", None),
            ("for=1.2.3.4;for=5.6.7.8", None),
            ("forwarded=1.2.3.4", None),
            ("", None),
        ] {
            let found = node(element.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{element}");
        }
    }
}
