//! Values between commas, below a line that names them.

use std::ops::Range;

use super::broken::BrokenLine;
use super::escape::same_name;
use super::fields::{Fields, TimeUnit};
use super::format::BYTE_ORDER_MARK;
use super::line::Line;
use super::named::Slots;
use super::reader::OpenError;

/// No header names more.
const MAX_COLUMNS: usize = 1_000;

/// Reads lines below one header. Each record is a line of its own: a quoted value that goes over the end
/// of its line is broken, since a log is read in parts that are cut there.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    header: Vec<u8>,
    names: Vec<String>,
    slots: Slots,
    unit: TimeUnit,
    record: Record,
}

/// A record, which lies in `text` if it had quotes and else in the line.
#[derive(Clone, Debug)]
struct Record {
    values: Vec<Option<Range<usize>>>,
    reader: csv_core::Reader,
    line: Vec<u8>,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// How many there are, which may be more than `values` has places for.
    count: usize,
}

impl Csv {
    /// `beginning` is that of the log.
    pub(super) fn open(beginning: &[u8], fields: &Fields) -> Result<Self, OpenError> {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let header = beginning.split(|beginning| *beginning == b'\n').next().unwrap_or_default();
        let header = header.strip_suffix(b"\r").unwrap_or(header);
        let columns = columns(header).ok_or(OpenError::NoHeader)?;
        let names: Vec<String> = columns.iter().map(|column| fields.of_column(column)).collect();
        let slots = Slots::new(&names, None);
        if !slots.has_time() || !slots.has_who() {
            return Err(OpenError::NoColumn {
                name: if slots.has_time() { "key" } else { "time" },
            });
        }
        Ok(Csv {
            header: header.to_vec(),
            record: Record::new(names.len()),
            names,
            slots,
            unit: fields.time_unit(),
        })
    }

    /// The line; nothing if it is the header, at the beginning or where files were put together.
    pub(super) fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Line<'a>>, BrokenLine> {
        if line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) == self.header {
            return Ok(None);
        }
        let has_quotes = memchr::memchr(b'"', line).is_some();
        if has_quotes {
            self.record.read_quoted(line)?;
        } else {
            self.record.read_plain(line);
        }
        let (values, columns) = (self.record.count, self.names.len());
        if values > columns {
            return Err(BrokenLine::Columns { values, columns });
        }
        let text = if has_quotes { &self.record.text[..] } else { line };
        self.slots.line(&self.names, &self.record.values, text, self.unit).map(Some)
    }
}

impl Record {
    fn new(columns: usize) -> Self {
        Record {
            values: vec![None; columns],
            // A carriage return amid a line is part of a value, as it is in a line without quotes.
            reader: csv_core::ReaderBuilder::new()
                .terminator(csv_core::Terminator::Any(b'\n'))
                .build(),
            line: Vec::new(),
            text: Vec::new(),
            // One place more, so that a record with too many values is seen.
            ends: vec![0; columns + 1],
            count: 0,
        }
    }

    /// A line without quotes, cut at its commas.
    fn read_plain(&mut self, line: &[u8]) {
        let ends = memchr::memchr_iter(b',', line).chain([line.len()]);
        self.fill(ends.scan(0, |start, end| Some(std::mem::replace(start, end + 1)..end)));
    }

    fn read_quoted(&mut self, line: &[u8]) -> Result<(), BrokenLine> {
        // Within quotes a quote is written twice, so an odd one is never closed.
        if memchr::memchr_iter(b'"', line).count() % 2 == 1 {
            return Err(BrokenLine::Unclosed);
        }
        self.line.clear();
        self.line.extend_from_slice(line);
        self.line.push(b'\n');
        self.text.resize(self.line.len(), 0);
        self.reader.reset();
        let (_, _, _, found) = self.reader.read_record(&self.line, &mut self.text, &mut self.ends);
        let ends = std::mem::take(&mut self.ends);
        let taken = ends.iter().take(found).copied();
        self.fill(taken.scan(0, |start, end| Some(std::mem::replace(start, end)..end)));
        self.ends = ends;
        Ok(())
    }

    fn fill(&mut self, mut ranges: impl Iterator<Item = Range<usize>>) {
        let mut filled = 0;
        for value in &mut self.values {
            *value = ranges.next();
            filled += usize::from(value.is_some());
        }
        self.count = filled + ranges.count();
    }
}

/// Whether a line names what a CSV must have.
pub(super) fn is_header(line: &[u8]) -> bool {
    let has = |columns: &[String], name: &str| {
        columns.iter().any(|column| same_name(column.as_bytes(), name.as_bytes()))
    };
    columns(line).is_some_and(|column| has(&column, "time") && has(&column, "key"))
}

/// The columns that a header names.
fn columns(header: &[u8]) -> Option<Vec<String>> {
    let count = memchr::memchr_iter(b',', header).count() + 1;
    if count > MAX_COLUMNS {
        return None;
    }
    let mut record = Record::new(count);
    record.read_quoted(header).ok()?;
    let text = |range: &Option<Range<usize>>| {
        let text = record.text.get(range.clone()?)?.trim_ascii();
        Some(std::str::from_utf8(text).ok()?.to_owned())
    };
    record.values.iter().take(record.count).map(text).collect()
}
