//! The mapping of field names.

use std::fmt;
use std::str::FromStr;

use super::defaults::{DEFAULTS, HEADERS, REQUEST};
use super::escape::same_name;

/// Names beyond [`DEFAULTS`] and headers. They are only looked up on request, because logs use them for
/// other values.
const EXTRA: [&str; 7] =
    ["verb", "request_id", "lease_id", "reservation_id", "max_wait", "for", "charged_at"];

/// The mapping from Tollgate's names to fields of JSON or columns of CSV.
///
/// Tollgate's names are `time`, `ip`, `method`, `path`, `host`, `user`, `status`, `key`, `cost`, `note` and
/// `header.NAME`, and `verb` (the operation) with its parameters `request_id`, `lease_id`,
/// `reservation_id`, `max_wait`, `for` and `charged_at`. In the name of a log's field, a dot leads into an
/// object. Names are compared without regard to case, and `-` equals `_`.
///
/// In JSON, the first ten are found automatically in the logs of nginx, Caddy, Traefik, Envoy, HAProxy,
/// Apache and the Elastic Common Schema: the time in `time`, `ts`, `timestamp`, `@timestamp`, `StartUTC`,
/// `start_time`, `msec`, `time_iso8601`, `time_local` or `date`, the address in `ip`, `client_ip`,
/// `remote_addr`, `remote_ip`, `request.remote_ip`, `ClientHost` and others; the first field that a line has
/// is used. Headers and all other names must be requested with [`Fields::want`] or [`Fields::set`]. Columns
/// of CSV have Tollgate's names, unless [`Fields::set`] maps them.
///
/// ```
/// use tollgate_replay::log::{Fields, Format, Reader};
///
/// let mut fields = Fields::default();
/// fields.assign("key=account.id")?;
/// fields.want("header.x-api-key")?;
///
/// let line = br#"{"ts":1763650000.5,"account":{"id":7},"request":{"headers":{"X-Api-Key":["k1"]}}}"#;
/// let mut reader = Reader::open(Some(Format::Json), line, &fields)?;
/// let line = reader.read(line)?.expect("it is not empty");
/// assert_eq!(line.time.at.to_string(), "1763650000.5");
/// assert_eq!(line.key, Some(&b"7"[..]));
/// assert_eq!(line.header("x-api-key"), Some(&b"k1"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fields {
    named: Vec<FieldName>,
    unit: TimeUnit,
}

#[derive(Clone, Debug)]
struct FieldName {
    ours: String,
    /// The name in the log, if it was set.
    theirs: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        let named = |(ours, _): &(&str, _)| FieldName { ours: (*ours).to_owned(), theirs: None };
        Fields { named: DEFAULTS.iter().map(named).collect(), unit: TimeUnit::Seconds }
    }
}

impl Fields {
    /// Maps Tollgate's name `ours` to the field `theirs`.
    ///
    /// # Errors
    /// `ours` is unknown, or `theirs` is empty.
    pub fn set(&mut self, ours: &str, theirs: &str) -> Result<(), FieldsError> {
        if theirs.is_empty() || theirs.split('.').any(str::is_empty) {
            return Err(FieldsError::InvalidName {
                ours: ours.to_owned(),
                theirs: theirs.to_owned(),
            });
        }
        self.want(ours)?;
        for named in &mut self.named {
            if same_name(named.ours.as_bytes(), ours.as_bytes()) {
                named.theirs = Some(theirs.to_owned());
            }
        }
        Ok(())
    }

    /// [`Fields::set`] with the text `OURS=THEIRS`.
    ///
    /// # Errors
    /// Those of [`Fields::set`], or the `=` is missing.
    pub fn assign(&mut self, text: &str) -> Result<(), FieldsError> {
        let (ours, theirs) =
            text.split_once('=').ok_or_else(|| FieldsError::MissingSign(text.to_owned()))?;
        self.set(ours.trim(), theirs.trim())
    }

    /// Requests a field that is not looked up by default: a header, or a parameter of an operation.
    ///
    /// # Errors
    /// `ours` is unknown.
    pub fn want(&mut self, ours: &str) -> Result<(), FieldsError> {
        let is = |text: &str| same_name(text.as_bytes(), ours.as_bytes());
        if self.named.iter().any(|named| is(&named.ours)) {
            return Ok(());
        }
        let is_header = ours.strip_prefix("header.").is_some_and(|our| !our.is_empty());
        if !is_header && !EXTRA.iter().any(|name| is(name)) {
            return Err(FieldsError::Unknown(ours.to_owned()));
        }
        self.named.push(FieldName { ours: ours.to_ascii_lowercase(), theirs: None });
        Ok(())
    }

    /// Sets the unit of numeric times; the default is seconds.
    pub fn set_time_unit(&mut self, unit: TimeUnit) {
        self.unit = unit;
    }

    pub(super) fn time_unit(&self) -> TimeUnit {
        self.unit
    }

    /// Tollgate's names in the order of the slots of [`Fields::places`]; that of the request line is empty.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.named.iter().map(|named| named.ours.clone());
        names.chain([String::new()]).collect()
    }

    /// The names of each field in JSON, best first.
    pub(super) fn places(&self) -> Vec<Vec<String>> {
        let request = REQUEST.iter().map(|request| (*request).to_owned()).collect();
        self.named.iter().map(FieldName::places).chain([request]).collect()
    }

    /// Tollgate's name of a CSV column.
    pub(super) fn name_of_column(&self, column: &str) -> String {
        let is_column = |named: &&FieldName| {
            named
                .theirs
                .as_ref()
                .is_some_and(|their| same_name(their.as_bytes(), column.as_bytes()))
        };
        self.named
            .iter()
            .find(is_column)
            .map_or_else(|| column.to_owned(), |named| named.ours.clone())
    }
}

impl FieldName {
    fn places(&self) -> Vec<String> {
        if let Some(theirs) = &self.theirs {
            return vec![theirs.clone()];
        }
        if let Some((_, names)) = DEFAULTS.iter().find(|(ours, _)| *ours == self.ours) {
            return names.iter().map(|name| (*name).to_owned()).collect();
        }
        match self.ours.strip_prefix("header.") {
            Some(header) => HEADERS.iter().map(|h| h.replace('*', header)).collect(),
            None => vec![self.ours.clone()],
        }
    }
}

/// The unit of numeric times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// `s`
    #[default]
    Seconds,
    /// `ms`
    Millis,
    /// `us`
    Micros,
    /// `ns`
    Nanos,
}

impl FromStr for TimeUnit {
    type Err = FieldsError;

    fn from_str(text: &str) -> Result<Self, FieldsError> {
        match text {
            "s" => Ok(TimeUnit::Seconds),
            "ms" => Ok(TimeUnit::Millis),
            "us" => Ok(TimeUnit::Micros),
            "ns" => Ok(TimeUnit::Nanos),
            _ => Err(FieldsError::UnknownUnit(text.to_owned())),
        }
    }
}

/// Why a mapping of fields is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldsError {
    /// Tollgate's name is unknown.
    Unknown(String),
    /// The name of the log's field is invalid.
    InvalidName {
        /// Tollgate's name.
        ours: String,
        /// The name of the log's field.
        theirs: String,
    },
    /// The `=` is missing.
    MissingSign(String),
    /// The unit is unknown.
    UnknownUnit(String),
}

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldsError::Unknown(name) => {
                write!(f, "unknown field {name:?}; expected header.NAME")?;
                DEFAULTS
                    .iter()
                    .map(|default| default.0)
                    .chain(EXTRA)
                    .try_for_each(|name| write!(f, ", {name}"))
            }
            FieldsError::InvalidName { ours, theirs } => write!(
                f,
                "invalid field name {theirs:?} for {ours}; use the name in the log, with dots into \
                 objects, as in request.headers.Host"
            ),
            FieldsError::MissingSign(text) => {
                write!(f, "missing = in {text:?}; use OURS=THEIRS, as in time=ts")
            }
            FieldsError::UnknownUnit(text) => {
                write!(f, "unknown unit {text:?}; expected s, ms, us or ns")
            }
        }
    }
}

impl std::error::Error for FieldsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_mappings_are_rejected_with_a_reason() {
        let check = |text: &str, expected: &str| {
            let error = Fields::default().assign(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("tme=ts", r#"unknown field "tme"; expected header.NAME, time, ip, "#);
        check("header.=x", "unknown field");
        check("time", "missing =");
        check("time=", "use the name in the log");
        check("time=a..b", "use the name in the log");
        assert!("min".parse::<TimeUnit>().unwrap_err().to_string().contains("s, ms, us or ns"));
    }
}
