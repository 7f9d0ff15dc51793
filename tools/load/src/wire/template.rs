//! A request that is the same for every key, but for some digits.

use tollgate::Id;

/// The bytes of a request, with holes for the key's number, a lease's id and a minute. Asking copies
/// it and fills the holes.
#[derive(Clone, Debug, Default)]
pub(super) struct Template {
    bytes: Vec<u8>,
    holes: Vec<(usize, Hole)>,
}

/// What stands in a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hole {
    /// A key's number, of so many digits.
    Key(usize),
    /// A lease's id.
    Lease,
    /// Minutes since the epoch.
    Minute,
}

/// The digits of minutes since the epoch, until the year 3871.
const MINUTE_DIGITS: usize = 9;

impl Hole {
    pub(super) const fn width(self) -> usize {
        match self {
            Hole::Key(width) => width,
            Hole::Lease => 32,
            Hole::Minute => MINUTE_DIGITS,
        }
    }
}

impl Template {
    pub(super) fn text(mut self, text: &str) -> Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub(super) fn hole(mut self, hole: Hole) -> Self {
        self.holes.push((self.bytes.len(), hole));
        self.bytes.resize(self.bytes.len() + hole.width(), b'0');
        self
    }

    pub(super) fn then(mut self, other: &Template) -> Self {
        let moved = other.holes.iter().map(|(at, hole)| (at + self.bytes.len(), *hole));
        self.holes.extend(moved);
        self.bytes.extend_from_slice(&other.bytes);
        self
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// As it is, with zeros in the holes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn write(&self, key: u32, minute: u64, lease: Id, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for (at, hole) in &self.holes {
            let Some(place) = out.get_mut(start + at..start + at + hole.width()) else { continue };
            match hole {
                Hole::Key(_) => decimal(u64::from(key), place),
                Hole::Minute => decimal(minute, place),
                Hole::Lease => hexadecimal(lease.as_u128(), place),
            }
        }
    }
}

/// Writes a number from the right, over zeros.
fn decimal(number: u64, place: &mut [u8]) {
    let mut text = itoa::Buffer::new();
    let digits = text.format(number).bytes().rev();
    place.iter_mut().rev().zip(digits).for_each(|(place, digit)| *place = digit);
}

fn hexadecimal(mut number: u128, place: &mut [u8]) {
    for place in place.iter_mut().rev() {
        let digit = usize::try_from(number % 16).unwrap_or(0);
        *place = b"0123456789abcdef"[digit];
        number /= 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_and_the_rest_is_the_same() {
        let key = Template::default().text("k:").hole(Hole::Key(4));
        let all = Template::default().text("<").hole(Hole::Minute).text("|").then(&key);
        let all = all.text("|").hole(Hole::Lease).text(">");
        let mut out = b"before".to_vec();
        all.write(42, 29_390_000, Id::from_u128(0xabc), &mut out);
        let expected = "before<029390000|k:0042|00000000000000000000000000000abc>";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
