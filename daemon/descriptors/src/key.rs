//! The key under which a descriptor is counted.
//!
//! `user=7;route=%2525` reads as the request has it, and no two descriptors have the same: what
//! separates is escaped in keys and values, and an empty key is written `%`.

use super::unit::Unit;

/// The most bytes of a key.
const MAX_BYTES: usize = 65_536;

/// Writes a key, or tells how many bytes it would have.
///
/// What is shared stands in the place of the value of the entry of its index. The domain leads
/// where the policy's name does not tell it; the unit follows where it tells apart what a request
/// brought from what is configured.
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
        let value = shared.next_if(|(at, _)| *at == index).map_or(*value, |(_, x)| *x);
        escape(value, &mut text);
    }
    if let Some(unit) = unit {
        text.push_str(if entries.is_empty() { "=" } else { ";=" });
        text.push_str(unit.name());
    }
    if text.len() > MAX_BYTES { Err(text.len()) } else { Ok(text) }
}

/// Writes a text with `%`, `;` and `=` escaped as in a URL.
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
        rest = special.get(1..).unwrap_or_default();
    }
    to.push_str(rest);
}
