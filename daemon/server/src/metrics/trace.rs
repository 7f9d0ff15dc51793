//! The trace that a request is part of, as its caller says in `traceparent`
//! (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

/// The id of a trace: 32 hexadecimal digits, not all of them 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId([u8; 16]);

impl TraceId {
    /// The id in a `traceparent`; nothing unless the whole header is well-formed.
    pub(crate) fn of(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let version: [u8; 1] = hexadecimal(parts.next()?)?;
        let trace: [u8; 16] = hexadecimal(parts.next()?)?;
        let parent: [u8; 8] = hexadecimal(parts.next()?)?;
        let _flags: [u8; 1] = hexadecimal(parts.next()?)?;
        // The first version has these four parts; later ones may have more.
        let is_whole = version == [0] && parts.next().is_none() || (1..0xff).contains(&version[0]);
        (is_whole && trace != [0; 16] && parent != [0; 8]).then_some(TraceId(trace))
    }
}

/// Exactly so many bytes, in small letters.
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
        self.0.iter().try_for_each(|x| write!(f, "{x:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_well_formed_names_a_trace() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        for (header, is_one) in [
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
            let read = TraceId::of(header).map(|x| x.to_string());
            assert_eq!(read.as_deref(), is_one.then_some(TRACE), "{header}");
        }
    }
}
