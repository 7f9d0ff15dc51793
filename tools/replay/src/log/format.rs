//! What formats there are, and how they are told apart.

use std::fmt;
use std::str::FromStr;

use super::{access, csv};

/// How the lines of a log are written.
///
/// ```
/// use tollgate_replay::log::Format;
///
/// assert_eq!("json".parse(), Ok(Format::Json));
/// assert_eq!(Format::recognize(b"time,key\n1763650000,user:1\n"), Some(Format::Csv));
/// assert_eq!(Format::recognize(b"once upon a time"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// What Apache and nginx call common: `ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES`.
    Common,
    /// The same, and behind it `"REFERER" "USER-AGENT"`. A virtual host's `NAME:PORT` may stand
    /// before either.
    Combined,
    /// An object of JSON in each line.
    Json,
    /// Values between commas; the first line names the columns.
    Csv,
}

use Format::{Combined, Common, Csv, Json};

const NAMES: [(Format, &str); 4] =
    [(Common, "common"), (Combined, "combined"), (Json, "json"), (Csv, "csv")];

/// So many lines are looked at: the first may be something else, such as a note of the rotation.
const LINES_LOOKED_AT: usize = 16;

/// What an editor may put before a text; it says nothing.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Format {
    /// The format of the log that begins like this, by the first line that looks like one of them.
    ///
    /// A CSV is known by a first line that names `time` and `key`, JSON by its brace, and the other two
    /// by their time in brackets and the request behind it.
    #[must_use]
    pub fn recognize(beginning: &[u8]) -> Option<Format> {
        let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let lines = beginning.split(|beginning| *beginning == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.filter(|line| !line.is_empty()).take(LINES_LOOKED_AT).peekable();
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

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(x, _)| *x == self).map_or("", |(_, name)| name)
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

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no format; take common, combined, json or csv", self.0)
    }
}

impl std::error::Error for UnknownFormat {}
