//! Which field of a log means what.

use std::fmt;
use std::str::FromStr;

use super::defaults::{DEFAULTS, HEADERS, REQUEST};
use super::escape::same_name;

/// What a field can be beside those of [`DEFAULTS`] and the headers; looked for only where it is asked
/// for, since logs call other things so.
const FURTHER: [&str; 7] =
    ["verb", "request_id", "lease_id", "reservation_id", "max_wait", "for", "charged_at"];

/// Which field of JSON, or which column of a CSV, means what.
///
/// Our names are `time`, `ip`, `method`, `path`, `host`, `user`, `status`, `key`, `cost`, `note` and
/// `header.NAME`, and `verb` with what verbs have: `request_id`, `lease_id`, `reservation_id`,
/// `max_wait`, `for`, `charged_at`. In a log's name a point leads into an object; names
/// are compared without case, and `-` is `_`.
///
/// Of JSON, the first ten are found by themselves in what nginx, Caddy, Traefik, Envoy, HAProxy, Apache
/// and the Elastic Common Schema write: the time in `time`, `ts`, `timestamp`, `@timestamp`, `StartUTC`,
/// `start_time`, `msec`, `time_iso8601`, `time_local` or `date`, the address in `ip`, `client_ip`,
/// `remote_addr`, `remote_ip`, `request.remote_ip`, `ClientHost` and more, the first that a line has.
/// Headers and the rest must be asked for by [`Fields::want`] or [`Fields::set`]. Columns of a CSV have
/// our names, unless [`Fields::set`] says otherwise.
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
    named: Vec<Named>,
    unit: TimeUnit,
}

#[derive(Clone, Debug)]
struct Named {
    ours: String,
    /// What the log calls it, if that was said.
    theirs: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        let named = |(ours, _): &(&str, _)| Named { ours: (*ours).to_owned(), theirs: None };
        Fields { named: DEFAULTS.iter().map(named).collect(), unit: TimeUnit::Seconds }
    }
}

impl Fields {
    /// Says that the log calls `ours` `theirs`.
    ///
    /// # Errors
    /// `ours` is none of our names, or `theirs` is empty.
    pub fn set(&mut self, ours: &str, theirs: &str) -> Result<(), FieldsError> {
        if theirs.is_empty() || theirs.split('.').any(str::is_empty) {
            return Err(FieldsError::NoField { ours: ours.to_owned(), theirs: theirs.to_owned() });
        }
        self.want(ours)?;
        for named in &mut self.named {
            if same_name(named.ours.as_bytes(), ours.as_bytes()) {
                named.theirs = Some(theirs.to_owned());
            }
        }
        Ok(())
    }

    /// [`Fields::set`] with a text, `OURS=THEIRS`.
    ///
    /// # Errors
    /// Those of [`Fields::set`], or there is no `=`.
    pub fn assign(&mut self, text: &str) -> Result<(), FieldsError> {
        let (ours, theirs) =
            text.split_once('=').ok_or_else(|| FieldsError::NoSign(text.to_owned()))?;
        self.set(ours.trim(), theirs.trim())
    }

    /// Asks for a field that is not looked for by itself: a header, or what a verb has.
    ///
    /// # Errors
    /// `ours` is none of our names.
    pub fn want(&mut self, ours: &str) -> Result<(), FieldsError> {
        let is = |text: &str| same_name(text.as_bytes(), ours.as_bytes());
        if self.named.iter().any(|named| is(&named.ours)) {
            return Ok(());
        }
        let is_header = ours.strip_prefix("header.").is_some_and(|our| !our.is_empty());
        if !is_header && !FURTHER.iter().any(|further| is(further)) {
            return Err(FieldsError::Unknown(ours.to_owned()));
        }
        self.named.push(Named { ours: ours.to_ascii_lowercase(), theirs: None });
        Ok(())
    }

    /// Says in which unit a time is that is only digits; seconds unless this is called.
    pub fn set_time_unit(&mut self, unit: TimeUnit) {
        self.unit = unit;
    }

    pub(super) fn time_unit(&self) -> TimeUnit {
        self.unit
    }

    /// Our names, in the order of the slots of [`Fields::places`]; that of the request's line is empty.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.named.iter().map(|named| named.ours.clone());
        names.chain([String::new()]).collect()
    }

    /// Where JSON has each field, best first.
    pub(super) fn places(&self) -> Vec<Vec<String>> {
        let request = REQUEST.iter().map(|request| (*request).to_owned()).collect();
        self.named.iter().map(Named::places).chain([request]).collect()
    }

    /// What a column of a CSV is called by us.
    pub(super) fn of_column(&self, column: &str) -> String {
        let is_it = |named: &&Named| {
            named
                .theirs
                .as_ref()
                .is_some_and(|their| same_name(their.as_bytes(), column.as_bytes()))
        };
        self.named.iter().find(is_it).map_or_else(|| column.to_owned(), |named| named.ours.clone())
    }
}

impl Named {
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

/// In which unit a time is that is only digits.
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
            _ => Err(FieldsError::Unit(text.to_owned())),
        }
    }
}

/// What cannot be said of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldsError {
    /// Nothing of ours is called so.
    Unknown(String),
    /// Nothing can be called so in a log.
    NoField {
        /// Our name.
        ours: String,
        /// What the log should call it.
        theirs: String,
    },
    /// There is no `=`.
    NoSign(String),
    /// No unit is called so.
    Unit(String),
}

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldsError::Unknown(name) => {
                write!(f, "{name:?} is no field; take header.NAME")?;
                DEFAULTS
                    .iter()
                    .map(|default| default.0)
                    .chain(FURTHER)
                    .try_for_each(|x| write!(f, ", {x}"))
            }
            FieldsError::NoField { ours, theirs } => write!(
                f,
                "{theirs:?} is no name of a field for {ours}; write the log's own, with points into \
                 objects, as in request.headers.Host"
            ),
            FieldsError::NoSign(text) => {
                write!(f, "{text:?} has no =; write OURS=THEIRS, as in time=ts")
            }
            FieldsError::Unit(text) => write!(f, "{text:?} is no unit; take s, ms, us or ns"),
        }
    }
}

impl std::error::Error for FieldsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_said_is_said_why() {
        let check = |text: &str, expected: &str| {
            let error = Fields::default().assign(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("tme=ts", r#""tme" is no field; take header.NAME, time, ip, "#);
        check("header.=x", "is no field");
        check("time", "has no =");
        check("time=", "write the log's own");
        check("time=a..b", "write the log's own");
        assert!("min".parse::<TimeUnit>().unwrap_err().to_string().contains("s, ms, us or ns"));
    }
}
