//! Comma-separated values with a header.

use std::ops::Range;

use super::error::{LineError, OpenError};
use super::fields::{Fields, TimeUnit, same_name};
use super::line::{BYTE_ORDER_MARK, Line, Slots};

const MAX_COLUMNS: usize = 1_000;

/// Parses lines below one header. Each record is one line: a quoted value must not contain a line
/// end, because a log is read in blocks of lines.
#[derive(Clone, Debug)]
pub(super) struct Csv {
    header: Vec<u8>,
    names: Vec<String>,
    slots: Slots,
    unit: TimeUnit,
    record: Record,
}

/// A record; its values are ranges of `text` if it had quotes, otherwise of the line.
#[derive(Clone, Debug)]
struct Record {
    values: Vec<Option<Range<usize>>>,
    reader: csv_core::Reader,
    line: Vec<u8>,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The number of values, which may exceed the columns.
    count: usize,
}

impl Csv {
    /// `beginning` is that of the file.
    pub(super) fn open(beginning: &[u8], fields: &Fields) -> Result<Self, OpenError> {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let header = beginning.split(|byte| *byte == b'\n').next().unwrap_or(b"");
        let header = header.strip_suffix(b"\r").unwrap_or(header);
        let columns = columns(header).ok_or(OpenError::MissingHeader)?;
        let names: Vec<String> =
            columns.iter().map(|column| fields.name_of_column(column)).collect();
        let slots = Slots::new(&names, None);
        if let Some(name) = slots.missing() {
            return Err(OpenError::MissingColumn(name));
        }
        let (header, record) = (header.to_vec(), Record::new(names.len()));
        Ok(Csv { header, names, slots, unit: fields.unit, record })
    }

    /// Parses a line; `None` for the header, at the start or where files were concatenated.
    pub(super) fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Line<'a>>, LineError> {
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
            return Err(LineError::Columns { values, columns });
        }
        let text = if has_quotes { &self.record.text[..] } else { line };
        self.slots.line(&self.names, &self.record.values, text, self.unit).map(Some)
    }
}

impl Record {
    fn new(columns: usize) -> Self {
        Record {
            values: vec![None; columns],
            // A carriage return inside a line is part of a value, as in a line without quotes.
            reader: csv_core::ReaderBuilder::new()
                .terminator(csv_core::Terminator::Any(b'\n'))
                .build(),
            line: Vec::new(),
            text: Vec::new(),
            // One place more, so that a surplus value is detected.
            ends: vec![0; columns + 1],
            count: 0,
        }
    }

    /// Splits a line without quotes at its commas.
    fn read_plain(&mut self, line: &[u8]) {
        let ends = memchr::memchr_iter(b',', line).chain([line.len()]);
        self.fill(ends.scan(0, |start, end| Some(std::mem::replace(start, end + 1)..end)));
    }

    fn read_quoted(&mut self, line: &[u8]) -> Result<(), LineError> {
        // Quotes inside quotes are doubled, so an odd number means that one is not closed.
        if memchr::memchr_iter(b'"', line).count() % 2 == 1 {
            return Err(LineError::Unclosed);
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

/// Whether a line names the required columns.
pub(super) fn is_header(line: &[u8]) -> bool {
    let has = |columns: &[String], name: &str| {
        columns.iter().any(|column| same_name(column.as_bytes(), name.as_bytes()))
    };
    columns(line).is_some_and(|columns| has(&columns, "time") && has(&columns, "key"))
}

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
