//! The header `traceparent` (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

/// The id of a trace: 32 hexadecimal digits, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// Parses the id of a `traceparent` header; absent unless the whole header is well-formed.
    #[must_use]
    pub fn from_traceparent(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let version: [u8; 1] = hexadecimal(parts.next()?)?;
        let trace: [u8; 16] = hexadecimal(parts.next()?)?;
        let parent: [u8; 8] = hexadecimal(parts.next()?)?;
        let _flags: [u8; 1] = hexadecimal(parts.next()?)?;
        // Version 0 has these four parts; later versions may have more.
        let is_complete =
            version == [0] && parts.next().is_none() || (1..0xff).contains(&version[0]);
        (is_complete && trace != [0; 16] && parent != [0; 8]).then_some(TraceId(trace))
    }
}

/// Parses exactly `N` bytes in lower-case hexadecimal digits.
fn hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_header_has_a_trace_id() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        for (header, is_valid) in [
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
            ("00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false),
            ("00-0af7651916cd43dd8448eb211c80319\"-b7ad6b7169203331-01", false),
            ("", false),
        ] {
            let parsed = TraceId::from_traceparent(header).map(|id| id.to_string());
            assert_eq!(parsed.as_deref(), is_valid.then_some(TRACE), "{header}");
        }
    }
}
