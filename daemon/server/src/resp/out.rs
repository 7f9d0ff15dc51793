//! Replies as they go out, in either version of the protocol.

use std::fmt::{Display, Write};

/// Which version of the protocol a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    /// RESP2, which every connection begins with.
    #[default]
    Two,
    /// RESP3, once `HELLO 3` has asked for it.
    Three,
}

impl Protocol {
    /// The version of this number, if it is spoken.
    pub(super) const fn of_number(number: u8) -> Option<Self> {
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

/// The replies that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Out {
    bytes: Vec<u8>,
    /// What is being formatted, for its length goes before it.
    formatted: String,
    pub(super) protocol: Protocol,
}

impl Out {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what was written; gives memory back if it took more than `most` bytes.
    pub(super) fn clear(&mut self, most: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most);
    }

    /// Takes what there is, to be put back in parts.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends bytes that are a reply, or part of one.
    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    fn headed(&mut self, kind: u8, number: impl itoa::Integer) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A status of one word or a few.
    pub(super) fn simple(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// A problem, with its code as the first word, in one line whatever it quotes.
    pub(super) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        let line = |byte: u8| if byte < b' ' { b' ' } else { byte };
        self.bytes.extend(text.bytes().map(line));
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(super) fn integer(&mut self, number: i64) {
        self.headed(b':', number);
    }

    /// A count, or as much of it as an integer holds.
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
        self.integer(i64::try_from(size).unwrap_or(i64::MAX));
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.headed(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// What it is as a text.
    pub(super) fn display(&mut self, it: impl Display) {
        let mut text = std::mem::take(&mut self.formatted);
        text.clear();
        // Writing to a string does not fail.
        let _ = write!(text, "{it}");
        self.text(&text);
        self.formatted = text;
    }

    /// A text for people to read as it is.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Two => self.text(text),
            Protocol::Three => {
                self.headed(b'=', text.len() + 4);
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

    pub(super) fn boolean(&mut self, is: bool) {
        self.raw(match (self.protocol, is) {
            (Protocol::Two, false) => b":0\r\n",
            (Protocol::Two, true) => b":1\r\n",
            (Protocol::Three, false) => b"#f\r\n",
            (Protocol::Three, true) => b"#t\r\n",
        });
    }

    pub(super) fn array(&mut self, len: usize) {
        self.headed(b'*', len);
    }

    /// A map of so many pairs; RESP2 has them one after the other.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Two => self.headed(b'*', 2 * pairs),
            Protocol::Three => self.headed(b'%', pairs),
        }
    }

    pub(super) fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Two => self.headed(b'*', len),
            Protocol::Three => self.headed(b'~', len),
        }
    }
}
