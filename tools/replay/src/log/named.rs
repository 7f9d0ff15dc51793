//! A line from values that have names: what JSON and CSV share.

use std::ops::Range;

use super::access::request;
use super::broken::BrokenLine;
use super::fields::TimeUnit;
use super::line::{Further, Line, Stamp};
use super::time::in_text;

/// Where the values of a line are among all that its log has.
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
    /// `request` is where the request's line is, if anywhere.
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

    pub(super) fn has_who(&self) -> bool {
        self.key.or(self.ip).or(self.user).is_some()
    }

    /// The line of these values, each a part of `text`.
    pub(super) fn line<'a>(
        &self,
        names: &'a [String],
        values: &'a [Option<Range<usize>>],
        text: &'a [u8],
        unit: TimeUnit,
    ) -> Result<Line<'a>, BrokenLine> {
        let value = |slot: Option<usize>| text.get(values.get(slot?)?.clone()?);
        let said = |slot| value(slot).filter(|x| !matches!(*x, b"" | b"-"));
        let at = in_text(value(self.time).ok_or(BrokenLine::NoTime)?, unit)?;
        let mut line = Line::new(Stamp { at, whole_second: false });
        line.address = said(self.ip).map(without_port);
        line.method = said(self.method);
        line.target = said(self.path);
        line.host = said(self.host);
        line.user = said(self.user);
        line.status = said(self.status).and_then(|x| u16::try_from(number(x)?).ok());
        line.key = value(self.key).filter(|x| !x.is_empty());
        line.note = value(self.note).filter(|x| !x.is_empty());
        if let Some(cost) = value(self.cost).filter(|x| !x.is_empty()) {
            line.cost = Some(number(cost).ok_or(BrokenLine::Number { field: "cost" })?);
        }
        if let (None, None, Some(text)) = (line.method, line.target, said(self.request)) {
            let (method, target) = request(text);
            line.method = Some(method).filter(|x| !x.is_empty());
            line.target = Some(target).filter(|x| !x.is_empty());
        }
        line.further = Further::Named { names, values, text };
        Ok(line)
    }
}

/// `192.0.2.1` of `192.0.2.1:443`, and `2001:db8::1` of `[2001:db8::1]:443`.
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
