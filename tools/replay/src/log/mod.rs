//! Log formats and the parsing of lines.
//!
//! A [`Reader`] parses the lines of one file in any [`Format`] into a [`Line`] that borrows from
//! the input. An invalid line is a [`LineError`] with a reason; parsing can continue with the next
//! line.

mod access;
mod csv;
mod error;
mod fields;
mod json;
mod line;
mod time;

use access::Access;
use csv::Csv;
pub use error::{LineError, OpenError, printable};
pub use fields::{Fields, FieldsError, OPERATION_FIELDS, TimeUnit};
use json::Json;
use line::BYTE_ORDER_MARK;
pub use line::Line;
pub use time::Stamp;
pub(crate) use time::parse as parse_time;

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The common format of Apache and nginx: `ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES`.
    Common,
    /// The common format followed by `"REFERER" "USER-AGENT"`. The `NAME:PORT` of a virtual host
    /// may precede both formats.
    Combined,
    /// A JSON object per line.
    Json,
    /// Comma-separated values; the first line names the columns.
    Csv,
}

/// How many lines are examined: the first may be something else, such as a note of the log
/// rotation.
const DETECTION_LINES: usize = 16;

impl Format {
    /// The format of the log with this beginning, by the first line that matches a format.
    ///
    /// CSV is detected by a first line that names `time` and `key`, JSON by its brace, and the
    /// other two by the time in brackets followed by the request.
    pub fn detect(beginning: &[u8]) -> Option<Format> {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let lines = beginning.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.filter(|line| !line.is_empty()).take(DETECTION_LINES).peekable();
        if lines.peek().is_some_and(|first| csv::is_header(first)) {
            return Some(Format::Csv);
        }
        lines.find_map(|line| match line.first() {
            Some(b'{') => Some(Format::Json),
            _ if access::is_combined(line) => Some(Format::Combined),
            _ if access::is_common(line) => Some(Format::Common),
            _ => None,
        })
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Common => "common",
            Format::Combined => "combined",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }
}

/// Parses the lines of one file, in any order: every thread can have its own clone.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The given or detected format.
    pub format: Format,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Access(Box<Access>),
    Json(Box<Json>),
    Csv(Box<Csv>),
}

impl Reader {
    /// A reader for the file with this beginning, which contains whole lines; the header of CSV is
    /// taken from it. Without a format, the format is [detected](Format::detect).
    ///
    /// # Errors
    /// The format is unknown, or the header of CSV names neither a time nor a client.
    pub fn open(
        format: Option<Format>,
        beginning: &[u8],
        fields: &Fields,
    ) -> Result<Self, OpenError> {
        let format =
            format.or_else(|| Format::detect(beginning)).ok_or(OpenError::UnknownFormat)?;
        let kind = match format {
            Format::Common | Format::Combined => Kind::Access(Box::default()),
            Format::Json => Kind::Json(Box::new(Json::new(fields))),
            Format::Csv => Kind::Csv(Box::new(Csv::open(beginning, fields)?)),
        };
        Ok(Reader { format, kind })
    }

    /// Parses a line without its line end; `None` if it is empty or the header of CSV. Does not
    /// allocate once its buffers have grown.
    ///
    /// # Errors
    /// The line is invalid. The next line can still be parsed.
    pub fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Line<'a>>, LineError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii_start().is_empty() {
            return Ok(None);
        }
        match &mut self.kind {
            Kind::Access(access) => access.parse(line, self.format == Format::Combined).map(Some),
            Kind::Json(json) => {
                json.parse(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)).map(Some)
            }
            Kind::Csv(csv) => csv.parse(line),
        }
    }
}
