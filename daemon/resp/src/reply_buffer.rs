//! Encoding of replies in RESP2 and RESP3.

use std::fmt::{Display, Write};
use std::ops::Range;

use tollgate::{Decision, Policy};

use super::template::{Shape, Templates};

/// A text encoded as a bulk string at compile time.
macro_rules! encoded {
    ($text:literal) => {{
        const BYTES: [u8; $crate::reply_buffer::bulk_len($text)] =
            $crate::reply_buffer::encode_bulk($text);
        &BYTES
    }};
}
pub(super) use encoded;

/// The encoded length of a bulk string of at most 99 bytes.
pub(super) const fn bulk_len(text: &str) -> usize {
    text.len() + if text.len() < 10 { 6 } else { 7 }
}

/// Encodes a bulk string of at most 99 bytes; `LEN` is its [`bulk_len`].
pub(super) const fn encode_bulk<const LEN: usize>(text: &str) -> [u8; LEN] {
    const DIGITS: [u8; 10] = *b"0123456789";
    let text = text.as_bytes();
    let (mut encoded, mut at) = ([0; LEN], LEN - text.len() - 5);
    encoded[0] = b'$';
    encoded[1] = DIGITS[text.len() / 10];
    encoded[at] = DIGITS[text.len() % 10];
    encoded[at + 1] = b'\r';
    encoded[at + 2] = b'\n';
    at += 3;
    let mut from = 0;
    while from < text.len() {
        encoded[at + from] = text[from];
        from += 1;
    }
    encoded[LEN - 2] = b'\r';
    encoded[LEN - 1] = b'\n';
    encoded
}

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
    /// Where the varying counts of the current reply are, while they are recorded.
    varying: Option<Vec<Range<usize>>>,
    pub(super) templates: Templates,
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
    fn prefixed(&mut self, kind: u8, number: u64) {
        push_prefixed(&mut self.bytes, kind, number);
    }

    fn prefixed_len(&mut self, kind: u8, len: usize) {
        // A length has at most 64 bits.
        self.prefixed(kind, u64::try_from(len).unwrap_or(u64::MAX));
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
        push_formatted(&mut self.bytes, b':', number);
    }

    /// An unsigned integer, clamped to the range of the protocol.
    #[inline]
    pub(super) fn count(&mut self, count: u64) {
        push_count(&mut self.bytes, count);
    }

    /// A count that differs between replies with the same text.
    pub(super) fn varying(&mut self, count: u64) {
        let start = self.bytes.len();
        self.count(count);
        if let Some(varying) = &mut self.varying {
            varying.push(start..self.bytes.len());
        }
    }

    /// Writes a decision from a template; whether there is one.
    #[inline]
    pub(super) fn write_template(
        &mut self,
        policy: &Policy,
        shape: Shape,
        decision: &Decision,
    ) -> bool {
        let template = self.templates.find(policy, shape);
        template.inspect(|template| template.write(decision, &mut self.bytes)).is_some()
    }

    /// Appends what `write` writes; returns it without its varying counts, and the length before each.
    pub(super) fn record(&mut self, write: impl FnOnce(&mut Self)) -> (Vec<u8>, Vec<usize>) {
        let mut rest = self.bytes.len();
        self.varying = Some(Vec::new());
        write(self);
        let (mut text, mut lens) = (Vec::new(), Vec::new());
        for varying in self.varying.take().unwrap_or_default() {
            text.extend_from_slice(&self.bytes[rest..varying.start]);
            lens.push(varying.start - rest);
            rest = varying.end;
        }
        text.extend_from_slice(&self.bytes[rest..]);
        (text, lens)
    }

    pub(super) fn size(&mut self, size: usize) {
        self.prefixed_len(b':', size);
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.prefixed_len(b'$', bytes.len());
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
                self.prefixed_len(b'=', text.len() + 4);
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
        self.prefixed_len(b'*', len);
    }

    /// A map; in RESP2 an array of alternating keys and values.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Two => self.prefixed_len(b'*', 2 * pairs),
            Protocol::Three => self.prefixed_len(b'%', pairs),
        }
    }

    pub(super) fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Two => self.prefixed_len(b'*', len),
            Protocol::Three => self.prefixed_len(b'~', len),
        }
    }
}

#[inline]
fn push_prefixed(bytes: &mut Vec<u8>, kind: u8, number: u64) {
    match u8::try_from(number) {
        Ok(one @ 0..=9) => bytes.extend_from_slice(&[kind, b'0' + one, b'\r', b'\n']),
        Ok(two @ 10..=99) => {
            bytes.extend_from_slice(&[kind, b'0' + two / 10, b'0' + two % 10, b'\r', b'\n']);
        }
        _ => push_formatted(bytes, kind, number),
    }
}

fn push_formatted(bytes: &mut Vec<u8>, kind: u8, number: impl itoa::Integer) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    bytes.reserve(digits.len() + 3);
    bytes.push(kind);
    bytes.extend_from_slice(digits);
    bytes.extend_from_slice(b"\r\n");
}

/// An unsigned integer, clamped to the range of the protocol.
#[inline]
pub(super) fn push_count(bytes: &mut Vec<u8>, count: u64) {
    push_prefixed(bytes, b':', count.min(i64::MAX.unsigned_abs()));
}
