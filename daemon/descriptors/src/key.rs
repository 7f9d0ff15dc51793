//! The key of a descriptor's counter.
//!
//! Keys are readable, such as `user=7;route=%2525`, and unique: separators are escaped in keys and
//! values, and an empty key is written `%`.

use super::unit::Unit;

/// The maximum length of a key in bytes.
const MAX_BYTES: usize = 65_536;

/// Returns the key, or its length if it is too long.
///
/// `shared` replaces the values of entries by index. The key begins with the domain if the policy's
/// name does not identify it, and ends with the unit if a request supplied a limit with a unit of
/// its own.
pub fn key(
    domain: Option<&str>,
    entries: &[(&str, &str)],
    shared: &[(usize, &str)],
    unit: Option<Unit>,
) -> Result<String, usize> {
    let bytes = entries.iter().map(|(key, value)| key.len() + value.len() + 2).sum::<usize>();
    let mut text = String::with_capacity(bytes.min(MAX_BYTES) + 24);
    if let Some(domain) = domain {
        text.push('=');
        escape(domain, &mut text);
        text.push(';');
    }
    let mut shared = shared.iter().peekable();
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            text.push(';');
        }
        if key.is_empty() {
            text.push('%');
        }
        escape(key, &mut text);
        text.push('=');
        let value = shared.next_if(|(at, _)| *at == index).map_or(*value, |(_, shared)| *shared);
        escape(value, &mut text);
    }
    if let Some(unit) = unit {
        text.push_str(if entries.is_empty() { "=" } else { ";=" });
        text.push_str(unit.name());
    }
    if text.len() > MAX_BYTES { Err(text.len()) } else { Ok(text) }
}

/// Appends a text with `%`, `;` and `=` percent-encoded.
fn escape(text: &str, to: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'%' | b';' | b'=')) {
        let (plain, special) = rest.split_at(at);
        to.push_str(plain);
        to.push_str(match special.as_bytes().first() {
            Some(b'%') => "%25",
            Some(b';') => "%3B",
            _ => "%3D",
        });
        rest = special.split_at(1).1;
    }
    to.push_str(rest);
}
