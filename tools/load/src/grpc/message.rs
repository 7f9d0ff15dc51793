//! The few fields of `envoy.service.ratelimit.v3` that are needed, as protobuf.

/// A `RateLimitRequest` of one descriptor `key=…`, framed for gRPC, in which the key's number is
/// filled in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    at: usize,
    width: usize,
}

impl Request {
    /// One for a domain, with keys that begin so; without hits it asks and charges nothing.
    pub(crate) fn new(domain: &str, prefix: &str, width: usize, hits: u64) -> Self {
        let value = format!("{prefix}{:0width$}", 0);
        let entry = [field(1, b"key"), field(2, value.as_bytes())].concat();
        let mut descriptor = field(1, &entry);
        if hits == 0 {
            // google.protobuf.UInt64Value of nothing: of the descriptor 0 is 0.
            descriptor.extend(field(3, &[]));
        }
        let mut message = [field(1, domain.as_bytes()), field(2, &descriptor)].concat();
        // The number stands before what follows the entry.
        let behind = if hits == 0 { field(3, &[]).len() } else { 0 };
        let at = message.len() - behind - width;
        message.push(3 << 3);
        varint(hits, &mut message);
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let bytes = [&[0][..], &length.to_be_bytes(), &message].concat();
        Request { bytes, at: at + 5, width }
    }

    pub(crate) fn of(&self, key: u32) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut text = itoa::Buffer::new();
        if let Some(place) = bytes.get_mut(self.at..self.at + self.width) {
            let digits = text.format(key).bytes().rev();
            place.iter_mut().rev().zip(digits).for_each(|(place, digit)| *place = digit);
        }
        bytes
    }
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 4);
    varint(number << 3 | 2, &mut out);
    varint(u64::try_from(bytes.len()).unwrap_or(0), &mut out);
    out.extend_from_slice(bytes);
    out
}

/// What a `RateLimitResponse` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) allowed: bool,
    /// Whether any limit is behind it.
    pub(crate) is_limited: bool,
}

const OK: u64 = 1;
const OVER_LIMIT: u64 = 2;

/// Reads a framed message; nothing if it is none.
pub(crate) fn response(framed: &[u8]) -> Option<Response> {
    let (head, message) = framed.split_at_checked(5)?;
    let length = u32::from_be_bytes(head.get(1..5)?.try_into().ok()?);
    let whole =
        head.first() == Some(&0) && u64::from(length) == u64::try_from(message.len()).ok()?;
    if !whole {
        return None;
    }
    let (mut code, mut is_limited) = (0, false);
    for part in Parts(message) {
        match part? {
            (1, Value::Number(number)) => code = number,
            // A status; its second field is the limit.
            (2, Value::Bytes(status)) => {
                is_limited |= Parts(status).any(|x| matches!(x, Some((2, Value::Bytes(_)))));
            }
            _ => {}
        }
    }
    matches!(code, OK | OVER_LIMIT).then_some(Response { allowed: code == OK, is_limited })
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in order; `None` in place of one that cannot be read, and then no more.
#[derive(Clone, Copy, Debug)]
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_none() {
            self.0 = &[];
        }
        Some(part)
    }
}

impl<'a> Parts<'a> {
    fn part(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => Value::Bytes(self.bytes(8)?),
            2 => {
                let length = self.number()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => Value::Bytes(self.bytes(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if *first < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stands_in_the_descriptor() {
        let check = |hits, tail: &[u8]| {
            let bytes = Request::new("api", "k-", 3, hits).of(42);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(text.contains("api") && text.contains("k-042"), "{text:?}");
            assert!(bytes.ends_with(tail), "{bytes:?}");
            assert_eq!(usize::from(bytes[4]) + 5, bytes.len());
        };
        check(1, &[24, 1]);
        check(300, &[24, 0xac, 2]);
        check(0, &[26, 0, 24, 0]);
    }

    #[test]
    fn any_bytes_are_a_response_or_none() {
        let framed = |message: &[u8]| {
            let length = u32::try_from(message.len()).unwrap();
            [&[0][..], &length.to_be_bytes(), message].concat()
        };
        let check = |message: &[u8], expected: Option<(bool, bool)>| {
            let found = response(&framed(message));
            assert_eq!(found.map(|it| (it.allowed, it.is_limited)), expected, "{message:?}");
        };
        check(&[8, 1, 18, 2, 8, 1], Some((true, false)));
        check(&[8, 2, 18, 6, 8, 2, 18, 2, 8, 5], Some((false, true)));
        check(&[], None);
        check(&[8, 3], None);
        check(&[8], None);
        check(&[18, 200, 1], None);
        check(&[255; 20], None);
        assert_eq!(response(&[0, 0, 0]), None);
    }
}
