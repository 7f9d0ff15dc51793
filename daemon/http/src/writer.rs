//! Writing JSON, fast: an answer is some twenty numbers.

use std::fmt::{Display, Write};

use tollgate::{Micros, Timestamp};

/// A text of JSON that grows.
#[derive(Debug)]
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Writer(String::with_capacity(bytes))
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    /// Writes JSON as it is.
    #[inline]
    pub(super) fn text(&mut self, json: &str) {
        self.0.push_str(json);
    }

    /// Writes a value behind its name and what else stands before it.
    #[inline]
    pub(super) fn put(&mut self, before: &str, value: impl Value) {
        self.0.push_str(before);
        value.write(self);
    }

    /// Writes a list behind its name, each of whose elements `write` writes.
    pub(super) fn list<T>(
        &mut self,
        before: &str,
        elements: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Writer, T),
    ) {
        self.0.push_str(before);
        self.0.push('[');
        for (index, element) in elements.into_iter().enumerate() {
            self.0.push_str(if index == 0 { "" } else { "," });
            write(self, element);
        }
        self.0.push(']');
    }
}

/// What can stand behind a name.
pub(super) trait Value {
    fn write(&self, json: &mut Writer);
}

impl Value for bool {
    fn write(&self, json: &mut Writer) {
        json.0.push_str(if *self { "true" } else { "false" });
    }
}

impl Value for u64 {
    fn write(&self, json: &mut Writer) {
        json.0.push_str(itoa::Buffer::new().format(*self));
    }
}

/// Seconds, with as many decimals as it takes.
impl Value for Micros {
    fn write(&self, json: &mut Writer) {
        const SECOND: u64 = 1_000_000;
        (self.get() / SECOND).write(json);
        let rest = self.get() % SECOND;
        if rest > 0 {
            // The 1 in front keeps the zeros behind it.
            let mut decimals = itoa::Buffer::new();
            let decimals = decimals.format(SECOND + rest).trim_end_matches('0');
            json.0.push('.');
            json.0.push_str(decimals.get(1..).unwrap_or_default());
        }
    }
}

impl Value for Timestamp {
    fn write(&self, json: &mut Writer) {
        Micros::new(self.as_micros()).write(json);
    }
}

impl<T: Value> Value for Option<T> {
    fn write(&self, json: &mut Writer) {
        match self {
            Some(value) => value.write(json),
            None => json.0.push_str("null"),
        }
    }
}

/// A word that holds nothing that JSON escapes.
impl Value for &str {
    fn write(&self, json: &mut Writer) {
        json.0.push('"');
        json.0.push_str(self);
        json.0.push('"');
    }
}

/// What is written as a text that holds nothing that JSON escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<T>(pub(super) T);

impl<T: Display> Value for Plain<T> {
    fn write(&self, json: &mut Writer) {
        // Writing to a string does not fail.
        let _ = write!(json.0, "\"{}\"", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_the_library_shows_them() {
        for micros in
            [0, 1, 10, 999_999, 1_000_000, 1_000_001, 1_100_000, 59_955_632, 1_763_650_000_123_456]
        {
            let mut json = Writer::with_capacity(32);
            Micros::new(micros).write(&mut json);
            assert_eq!(json.finish(), Micros::new(micros).to_string());
        }
    }

    #[test]
    fn commas_stand_between() {
        let mut json = Writer::with_capacity(64);
        json.list("", [Some(1), None, Some(2)], |json, j| json.put("", j));
        json.list("", [true; 0], |json, j| json.put("", j));
        assert_eq!(json.finish(), "[1,null,2][]");
    }
}
