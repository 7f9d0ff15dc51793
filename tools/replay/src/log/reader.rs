//! Lines of one file, whatever their format.

use std::fmt;

use super::access::Access;
use super::broken::BrokenLine;
use super::csv::Csv;
use super::fields::Fields;
use super::format::{BYTE_ORDER_MARK, Format};
use super::json::Json;
use super::line::Line;

/// Reads the lines of one file, in any order: threads may each have their own clone.
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
    /// A reader for the file that begins with `beginning`, of some whole lines; a CSV's header is taken
    /// from it. Without a format, it is [recognized](Format::recognize).
    ///
    /// # Errors
    /// The format is not recognized, or the header of a CSV does not name a time and who is limited.
    pub fn open(
        format: Option<Format>,
        beginning: &[u8],
        fields: &Fields,
    ) -> Result<Self, OpenError> {
        let format = format.or_else(|| Format::recognize(beginning)).ok_or(OpenError::Format)?;
        let kind = match format {
            Format::Common | Format::Combined => Kind::Access(Box::default()),
            Format::Json => Kind::Json(Box::new(Json::new(fields))),
            Format::Csv => Kind::Csv(Box::new(Csv::open(beginning, fields)?)),
        };
        Ok(Reader { format, kind })
    }

    /// The format that was told or recognized.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What a line says, without the end of line; nothing if it is empty, or the header of a CSV. No
    /// memory is taken for it, after the first of its size.
    ///
    /// # Errors
    /// It cannot be read. The next line can be all the same.
    pub fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Line<'a>>, BrokenLine> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii_start().is_empty() {
            return Ok(None);
        }
        match &mut self.kind {
            Kind::Access(access) => access.read(line, self.format == Format::Combined).map(Some),
            Kind::Json(json) => {
                json.read(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)).map(Some)
            }
            Kind::Csv(csv) => csv.read(line),
        }
    }
}

/// Why a file cannot be read as a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// No format is recognized.
    Format,
    /// The first line of a CSV is no header.
    NoHeader,
    /// The header of a CSV lacks a column.
    NoColumn {
        /// Which.
        name: &'static str,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Format => f.write_str(
                "its first lines are of no format that is recognized; name it with --format \
                 common|combined|json|csv, and begin a CSV with a line that names its columns, as in \
                 time,key",
            ),
            OpenError::NoHeader => f.write_str(
                "its first line cannot be a CSV's header; name the columns there, as in time,key",
            ),
            OpenError::NoColumn { name } => write!(
                f,
                "the first line of the CSV names no column {name}; name it there, or say with --field \
                 {name}=COLUMN which one it is"
            ),
        }
    }
}

impl std::error::Error for OpenError {}
