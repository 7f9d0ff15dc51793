//! Encoding of replies in RESP2 and RESP3.

use std::fmt::{Display, Write};

/// The protocol version of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    /// RESP2, the initial version.
    #[default]
    Two,
    /// RESP3, selected by `HELLO 3`.
    Three,
}

impl Protocol {
    /// The version of this number, if it is supported.
    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Protocol::Two),
            3 => Some(Protocol::Three),
            _ => None,
        }
    }

    pub(super) const fn number(self) -> u8 {
        match self {
            Protocol::Two => 2,
            Protocol::Three => 3,
        }
    }
}

/// Replies that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct ReplyBuffer {
    bytes: Vec<u8>,
    /// The value being formatted: its length precedes it.
    formatted: String,
    pub(super) protocol: Protocol,
}

impl ReplyBuffer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that are allocated for replies.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes all replies, and frees memory above `max_capacity` bytes.
    pub(super) fn clear(&mut self, max_capacity: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(max_capacity);
    }

    /// Takes all replies.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends encoded bytes.
    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    fn prefixed(&mut self, kind: u8, number: impl itoa::Integer) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A simple string.
    pub(super) fn simple(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// An error, with its code as the first word. Control characters become spaces.
    pub(super) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        self.bytes.extend(text.bytes().map(|byte| byte.max(b' ')));
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(super) fn integer(&mut self, number: i64) {
        self.prefixed(b':', number);
    }

    /// An unsigned integer, clamped to the range of the protocol.
    #[inline]
    pub(super) fn count(&mut self, count: u64) {
        match u8::try_from(count) {
            Ok(one @ 0..=9) => self.raw(&[b':', b'0' + one, b'\r', b'\n']),
            Ok(two @ 10..=99) => {
                self.raw(&[b':', b'0' + two / 10, b'0' + two % 10, b'\r', b'\n']);
            }
            _ => self.integer(i64::try_from(count).unwrap_or(i64::MAX)),
        }
    }

    pub(super) fn size(&mut self, size: usize) {
        self.prefixed(b':', size);
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.prefixed(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// A formatted value as a bulk string.
    pub(super) fn display(&mut self, value: impl Display) {
        let mut text = std::mem::take(&mut self.formatted);
        text.clear();
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{value}");
        self.text(&text);
        self.formatted = text;
    }

    /// A verbatim string, for people.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Two => self.text(text),
            Protocol::Three => {
                self.prefixed(b'=', text.len() + 4);
                self.raw(b"txt:");
                self.raw(text.as_bytes());
                self.raw(b"\r\n");
            }
        }
    }

    pub(super) fn null(&mut self) {
        self.raw(match self.protocol {
            Protocol::Two => b"$-1\r\n",
            Protocol::Three => b"_\r\n",
        });
    }

    pub(super) fn null_array(&mut self) {
        self.raw(match self.protocol {
            Protocol::Two => b"*-1\r\n",
            Protocol::Three => b"_\r\n",
        });
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.raw(match (self.protocol, value) {
            (Protocol::Two, false) => b":0\r\n",
            (Protocol::Two, true) => b":1\r\n",
            (Protocol::Three, false) => b"#f\r\n",
            (Protocol::Three, true) => b"#t\r\n",
        });
    }

    pub(super) fn array(&mut self, len: usize) {
        self.prefixed(b'*', len);
    }

    /// A map; in RESP2 an array of alternating keys and values.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Two => self.prefixed(b'*', 2 * pairs),
            Protocol::Three => self.prefixed(b'%', pairs),
        }
    }

    pub(super) fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Two => self.prefixed(b'*', len),
            Protocol::Three => self.prefixed(b'~', len),
        }
    }
}
