//! Lines with named values, for JSON and CSV.

use std::ops::Range;

use super::access::request;
use super::error::LineError;
use super::fields::TimeUnit;
use super::line::{ExtraFields, Line, Stamp};
use super::time;

/// The positions of the known values among all values of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    time: Option<usize>,
    ip: Option<usize>,
    method: Option<usize>,
    path: Option<usize>,
    host: Option<usize>,
    user: Option<usize>,
    status: Option<usize>,
    key: Option<usize>,
    cost: Option<usize>,
    note: Option<usize>,
    request: Option<usize>,
}

impl Slots {
    /// `request` is the position of the request line, if there is one.
    pub(super) fn new(names: &[String], request: Option<usize>) -> Self {
        let slot = |name: &str| names.iter().position(|n| n.eq_ignore_ascii_case(name));
        Slots {
            time: slot("time"),
            ip: slot("ip"),
            method: slot("method"),
            path: slot("path"),
            host: slot("host"),
            user: slot("user"),
            status: slot("status"),
            key: slot("key"),
            cost: slot("cost"),
            note: slot("note"),
            request,
        }
    }

    pub(super) fn has_time(&self) -> bool {
        self.time.is_some()
    }

    pub(super) fn has_client(&self) -> bool {
        self.key.or(self.ip).or(self.user).is_some()
    }

    /// Builds a line from values, which are ranges of `text`.
    pub(super) fn line<'a>(
        &self,
        names: &'a [String],
        values: &'a [Option<Range<usize>>],
        text: &'a [u8],
        unit: TimeUnit,
    ) -> Result<Line<'a>, LineError> {
        let value = |slot: Option<usize>| text.get(values.get(slot?)?.clone()?);
        let present = |slot| value(slot).filter(|text| !matches!(*text, b"" | b"-"));
        let at = time::parse(value(self.time).ok_or(LineError::NoTime)?, unit)?;
        let mut line = Line::new(Stamp { at, whole_second: false });
        line.address = present(self.ip).map(without_port);
        line.method = present(self.method);
        line.target = present(self.path);
        line.host = present(self.host);
        line.user = present(self.user);
        line.status = present(self.status).and_then(|text| u16::try_from(number(text)?).ok());
        line.key = value(self.key).filter(|text| !text.is_empty());
        line.note = value(self.note).filter(|text| !text.is_empty());
        if let Some(cost) = value(self.cost).filter(|text| !text.is_empty()) {
            line.cost = Some(number(cost).ok_or(LineError::Number { field: "cost" })?);
        }
        if let (None, None, Some(text)) = (line.method, line.target, present(self.request)) {
            let (method, target) = request(text);
            line.method = Some(method).filter(|text| !text.is_empty());
            line.target = Some(target).filter(|text| !text.is_empty());
        }
        line.extra = ExtraFields::Named { names, values, text };
        Ok(line)
    }
}

/// Removes the port: `192.0.2.1` of `192.0.2.1:443`, `2001:db8::1` of `[2001:db8::1]:443`.
fn without_port(address: &[u8]) -> &[u8] {
    if let Some(inside) = address.strip_prefix(b"[") {
        return memchr::memchr(b']', inside).and_then(|end| inside.get(..end)).unwrap_or(address);
    }
    match memchr::memchr(b':', address).and_then(|at| address.split_at_checked(at)) {
        Some((host, port)) if !port.get(1..).unwrap_or_default().contains(&b':') => host,
        _ => address,
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let number = text.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    });
    number.filter(|_| !text.is_empty())
}
