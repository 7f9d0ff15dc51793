//! Overrides as CSV with a header.

use std::collections::VecDeque;
use std::io::{self, Read};

use ::csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::{Bytes, OverridesFileError, Rows};

const KEY: &str = "key";
const LIMITS: &str = "limits";

/// The indices of the columns.
struct Columns {
    key: usize,
    limits: usize,
}

pub(super) fn read(file: &mut Bytes, rows: &mut Rows) {
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(Lines::new(file));
    let columns = match columns(&mut reader) {
        Ok(columns) => columns,
        Err(error) => return rows.errors.push(error),
    };
    let mut record = ByteRecord::new();
    while !rows.is_over() {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {
                let line = line(&mut reader, &record);
                add(rows, &columns, &record, line);
            }
            Ok(false) => return,
            Err(error) => return rows.errors.push(from_reader_error(&error)),
        }
    }
}

fn columns(reader: &mut Reader<Lines<&mut Bytes>>) -> Result<Columns, OverridesFileError> {
    let header = reader.byte_headers().map_err(|error| from_reader_error(&error))?;
    let place =
        |name: &str| header.iter().position(|header| header.trim_ascii() == name.as_bytes());
    match (place(KEY), place(LIMITS), header.len()) {
        (Some(key), Some(limits), 2) => Ok(Columns { key, limits }),
        _ => {
            let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            let error = OverridesFileError::new("expected the header key,limits");
            Err(error.with_value(&names.join(",")).at_line(1))
        }
    }
}

fn line(reader: &mut Reader<Lines<&mut Bytes>>, record: &ByteRecord) -> u64 {
    let Some(place) = record.position() else { return 0 };
    reader.get_mut().line_at(place.byte()).unwrap_or(place.line())
}

fn add(rows: &mut Rows, columns: &Columns, record: &ByteRecord, line: u64) {
    if record.len() != 2 {
        let fields = record.len();
        let s = if fields == 1 { "" } else { "s" };
        let message = format!(
            "{fields} field{s}, expected a key and limits; quote a value that contains a comma, \
             and join limits with ;"
        );
        return rows.errors.push(OverridesFileError::new(message).at_line(line));
    }
    match (text(record, columns.key, KEY), text(record, columns.limits, LIMITS)) {
        (Ok(key), Ok(limits)) => rows.add(line, key, limits),
        (Err(error), _) | (_, Err(error)) => rows.errors.push(error.at_line(line)),
    }
}

fn text<'a>(
    record: &'a ByteRecord,
    column: usize,
    field: &'static str,
) -> Result<&'a str, OverridesFileError> {
    let Some(bytes) = record.get(column) else {
        unreachable!("a record has as many fields as the header")
    };
    str::from_utf8(bytes).map_err(|_| {
        let error = OverridesFileError::new("invalid UTF-8");
        error.with_value(&String::from_utf8_lossy(bytes)).in_field(field)
    })
}

fn from_reader_error(error: &::csv::Error) -> OverridesFileError {
    match error.kind() {
        ErrorKind::Io(io) => OverridesFileError::unreadable(io),
        _ => {
            let line = error.position().map(|position| position.line());
            OverridesFileError { line, ..OverridesFileError::new(error.to_string()) }
        }
    }
}

/// Passes bytes on and records the offsets of non-empty lines. The CSV parser reports the position
/// of a record before the empty lines that precede it, and before the second character of a CRLF.
struct Lines<R> {
    from: R,
    offset: u64,
    line: u64,
    at_beginning: bool,
    /// Offset and number of each line that was not yet looked up.
    beginnings: VecDeque<(u64, u64)>,
}

impl<R> Lines<R> {
    fn new(from: R) -> Self {
        Lines { from, offset: 0, line: 1, at_beginning: true, beginnings: VecDeque::new() }
    }

    /// The first line that begins at or after the offset. Offsets must not decrease.
    fn line_at(&mut self, offset: u64) -> Option<u64> {
        while self.beginnings.front().is_some_and(|(x, _)| *x < offset) {
            self.beginnings.pop_front();
        }
        self.beginnings.front().map(|(_, line)| *line)
    }

    fn note(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.line += 1;
                self.at_beginning = true;
            }
            b'\r' => {}
            _ if self.at_beginning => {
                self.beginnings.push_back((self.offset, self.line));
                self.at_beginning = false;
            }
            _ => {}
        }
        self.offset += 1;
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(bytes)?;
        bytes.iter().take(read).for_each(|byte| self.note(*byte));
        Ok(read)
    }
}
