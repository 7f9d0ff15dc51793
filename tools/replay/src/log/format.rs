//! Log formats and their detection.

use std::fmt;
use std::str::FromStr;

use super::escape::BYTE_ORDER_MARK;
use super::{access, csv};

/// The format of a log.
///
/// ```
/// use tollgate_replay::log::Format;
///
/// assert_eq!("json".parse(), Ok(Format::Json));
/// assert_eq!(Format::detect(b"time,key\n1763650000,user:1\n"), Some(Format::Csv));
/// assert_eq!(Format::detect(b"once upon a time"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The common format of Apache and nginx: `ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES`.
    Common,
    /// The common format followed by `"REFERER" "USER-AGENT"`. The `NAME:PORT` of a virtual host may precede
    /// both formats.
    Combined,
    /// A JSON object per line.
    Json,
    /// Comma-separated values; the first line names the columns.
    Csv,
}

use Format::{Combined, Common, Csv, Json};

const NAMES: [(Format, &str); 4] =
    [(Common, "common"), (Combined, "combined"), (Json, "json"), (Csv, "csv")];

/// How many lines are examined: the first may be something else, such as a note of the log rotation.
const DETECTION_LINES: usize = 16;

impl Format {
    /// The format of the log with this beginning, by the first line that matches a format.
    ///
    /// CSV is detected by a first line that names `time` and `key`, JSON by its brace, and the other two by the
    /// time in brackets followed by the request.
    #[must_use]
    pub fn detect(beginning: &[u8]) -> Option<Format> {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let lines = beginning.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.filter(|line| !line.is_empty()).take(DETECTION_LINES).peekable();
        if lines.peek().is_some_and(|first| csv::is_header(first)) {
            return Some(Csv);
        }
        lines.find_map(|line| match line.first() {
            Some(b'{') => Some(Json),
            _ if access::is_combined(line) => Some(Combined),
            _ if access::is_common(line) => Some(Common),
            _ => None,
        })
    }

    /// The name.
    #[must_use]
    #[expect(clippy::expect_used, reason = "`NAMES` lists every format")]
    pub fn name(self) -> &'static str {
        let (_, name) =
            NAMES.iter().find(|(format, _)| *format == self).expect("`NAMES` lists every format");
        name
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(format, _)| *format).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// An unknown name of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown format {:?}; expected common, combined, json or csv", self.0)
    }
}

impl std::error::Error for UnknownFormat {}
