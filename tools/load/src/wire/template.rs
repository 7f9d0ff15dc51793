//! A request that is the same for every key, except for a few digits.

use tollgate::Id;

use crate::keys::Keys;

/// The bytes of a request with placeholders for the number of the key, the id of a lease and the
/// minute. Writing a request copies the bytes and fills the placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    placeholders: Vec<(usize, Placeholder)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// The number of a key, with this many digits.
    Key(usize),
    /// The id of a lease.
    Lease,
    /// The minutes since the epoch.
    Minute,
}

/// The number of digits in minutes since the epoch, until the year 3871.
const MINUTE_DIGITS: usize = 9;

impl Placeholder {
    pub(super) const fn width(self) -> usize {
        match self {
            Placeholder::Key(width) => width,
            Placeholder::Lease => 32,
            Placeholder::Minute => MINUTE_DIGITS,
        }
    }
}

impl Template {
    pub(super) fn text(mut self, text: &str) -> Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub(super) fn placeholder(mut self, kind: Placeholder) -> Self {
        self.placeholders.push((self.bytes.len(), kind));
        self.bytes.resize(self.bytes.len() + kind.width(), b'0');
        self
    }

    pub(crate) fn key(self, keys: &Keys) -> Self {
        self.text(&keys.prefix).placeholder(Placeholder::Key(keys.width()))
    }

    pub(super) fn append(mut self, other: &Template) -> Self {
        let moved = other.placeholders.iter().map(|(at, kind)| (at + self.bytes.len(), *kind));
        self.placeholders.extend(moved);
        self.bytes.extend_from_slice(&other.bytes);
        self
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The request with zeros in the placeholders.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn write(&self, key: u32, minute: u64, lease: Id, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for (at, kind) in &self.placeholders {
            let digits = &mut out[start + at..start + at + kind.width()];
            match kind {
                Placeholder::Key(_) => write_decimal(u64::from(key), digits),
                Placeholder::Minute => write_decimal(minute, digits),
                Placeholder::Lease => write_hexadecimal(lease.as_u128(), digits),
            }
        }
    }
}

/// Writes a number, aligned to the right, over zeros.
fn write_decimal(number: u64, out: &mut [u8]) {
    let mut text = itoa::Buffer::new();
    for (byte, digit) in out.iter_mut().rev().zip(text.format(number).bytes().rev()) {
        *byte = digit;
    }
}

fn write_hexadecimal(mut number: u128, out: &mut [u8]) {
    for byte in out.iter_mut().rev() {
        let [.., low] = number.to_be_bytes();
        *byte = b"0123456789abcdef"[usize::from(low & 0xf)];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_the_rest_is_unchanged() {
        let key = Template::default().text("k:").placeholder(Placeholder::Key(4));
        let all =
            Template::default().text("<").placeholder(Placeholder::Minute).text("|").append(&key);
        let all = all.text("|").placeholder(Placeholder::Lease).text(">");
        let mut out = b"before".to_vec();
        all.write(42, 29_390_000, Id::from_u128(0xabc), &mut out);
        let expected = "before<029390000|k:0042|00000000000000000000000000000abc>";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
