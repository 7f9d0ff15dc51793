//! Reads the lines of one file in any format.

use super::access::Access;
use super::csv::Csv;
use super::error::{LineError, OpenError};
use super::escape::BYTE_ORDER_MARK;
use super::fields::Fields;
use super::format::Format;
use super::json::Json;
use super::line::Line;

/// Parses the lines of one file, in any order: every thread can have its own clone.
#[derive(Clone, Debug)]
pub struct Reader {
    format: Format,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Access(Box<Access>),
    Json(Box<Json>),
    Csv(Box<Csv>),
}

impl Reader {
    /// A reader for the file with this beginning, which contains whole lines; the header of CSV is taken
    /// from it. Without a format, the format is [detected](Format::detect).
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

    /// The given or detected format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Parses a line without its line end; `None` if it is empty or the header of CSV. Does not allocate once
    /// its buffers have grown.
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
