//! The names of fields in logs, and their mapping.

use std::fmt;

/// Tollgate's name of each field, and its names in logs, of which the first one that a line has is
/// used. A dot leads into an object, or is part of the name. Names are compared without regard to
/// case, and `-` equals `_`.
///
/// They are the names of nginx (its variables), Caddy, Traefik, Envoy, HAProxy, Apache and the
/// Elastic Common Schema, as their documentation shows them.
pub(super) const DEFAULTS: [(&str, &str); 10] = [
    ("time", "time ts timestamp @timestamp StartUTC start_time msec time_iso8601 time_local date"),
    (
        "ip",
        "ip client_ip request.client_ip remote_addr remote_ip request.remote_ip ClientHost \
         downstream_remote_address_without_port client.ip source.ip client.address clientip \
         remoteip remote_host client address downstream_remote_address request.remote_addr",
    ),
    (
        "method",
        "method request.method request_method RequestMethod http_method http.request.method verb",
    ),
    (
        "path",
        "path request.uri request_uri RequestPath uri x_envoy_origin_path url.original url.path \
         target request_path http_path url",
    ),
    (
        "host",
        "host request.host http_host RequestHost authority :authority server_name vhost url.domain",
    ),
    ("user", "user user_id remote_user ClientUsername user.name user.id username auth"),
    (
        "status",
        "status DownstreamStatus response_code status_code OriginStatus http.response.status_code \
         response.status http_status response",
    ),
    ("key", "key"),
    ("cost", "cost"),
    ("note", "note"),
];

/// The request line, `GET / HTTP/1.1`, for logs without method and path.
const REQUEST: &str = "request request_line";

/// The names of a header; `*` is replaced by its name.
const HEADERS: &str =
    "request.headers.* headers.* request_headers.* http_* request_* http.request.headers.* *";

/// The operation of a line and its parameters. They are only looked up on request, because logs use
/// these names for other values.
pub const OPERATION_FIELDS: [&str; 7] =
    ["verb", "request_id", "lease_id", "reservation_id", "max_wait", "for", "charged_at"];

/// The mapping from Tollgate's names to fields of JSON or columns of CSV.
///
/// Tollgate's names are `time`, `ip`, `method`, `path`, `host`, `user`, `status`, `key`, `cost`,
/// `note` and `header.NAME`, and `verb` (the operation) with its parameters `request_id`,
/// `lease_id`, `reservation_id`, `max_wait`, `for` and `charged_at`. In the name of a log's field,
/// a dot leads into an object. Names are compared without regard to case, and `-` equals `_`.
///
/// In JSON, the first ten are found automatically in the logs of well-known servers; the first
/// field that a line has is used. Headers and all other names must be requested with
/// [`Fields::want`] or [`Fields::assign`]. Columns of CSV have Tollgate's names, unless
/// [`Fields::assign`] maps them.
#[derive(Clone, Debug)]
pub struct Fields {
    named: Vec<FieldName>,
    pub(super) unit: TimeUnit,
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
    /// Maps one of Tollgate's names to a field of the log: `OURS=THEIRS`.
    ///
    /// # Errors
    /// The `=` is missing, the name is unknown, or the field is empty.
    pub fn assign(&mut self, text: &str) -> Result<(), FieldsError> {
        let (ours, theirs) =
            text.split_once('=').ok_or_else(|| FieldsError::MissingSign(text.to_owned()))?;
        let (ours, theirs) = (ours.trim(), theirs.trim());
        if theirs.split('.').any(str::is_empty) {
            let (ours, theirs) = (ours.to_owned(), theirs.to_owned());
            return Err(FieldsError::InvalidName { ours, theirs });
        }
        self.want(ours)?;
        for named in &mut self.named {
            if same_name(named.ours.as_bytes(), ours.as_bytes()) {
                named.theirs = Some(theirs.to_owned());
            }
        }
        Ok(())
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
        if !is_header && !OPERATION_FIELDS.iter().any(|name| is(name)) {
            return Err(FieldsError::Unknown(ours.to_owned()));
        }
        self.named.push(FieldName { ours: ours.to_ascii_lowercase(), theirs: None });
        Ok(())
    }

    /// Sets the unit of numeric times; the default is seconds.
    pub fn set_time_unit(&mut self, unit: TimeUnit) {
        self.unit = unit;
    }

    /// Tollgate's names in the order of the slots of [`Fields::places`]; that of the request line
    /// is empty.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.named.iter().map(|named| named.ours.clone());
        names.chain([String::new()]).collect()
    }

    /// The names of each field in JSON, best first.
    pub(super) fn places(&self) -> Vec<Vec<String>> {
        self.named.iter().map(FieldName::places).chain([words(REQUEST)]).collect()
    }

    /// Tollgate's name of a CSV column.
    pub(super) fn name_of_column(&self, column: &str) -> String {
        let is_column = |theirs: &String| same_name(theirs.as_bytes(), column.as_bytes());
        let mut named = self.named.iter();
        let found = named.find(|named| named.theirs.as_ref().is_some_and(is_column));
        found.map_or_else(|| column.to_owned(), |named| named.ours.clone())
    }
}

impl FieldName {
    fn places(&self) -> Vec<String> {
        if let Some(theirs) = &self.theirs {
            return vec![theirs.clone()];
        }
        if let Some((_, names)) = DEFAULTS.iter().find(|(ours, _)| *ours == self.ours) {
            return words(names);
        }
        match self.ours.strip_prefix("header.") {
            Some(header) => words(&HEADERS.replace('*', header)),
            None => vec![self.ours.clone()],
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
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

/// Why a mapping of fields is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the message of a variant describes it")]
pub enum FieldsError {
    Unknown(String),
    InvalidName { ours: String, theirs: String },
    MissingSign(String),
}

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldsError::Unknown(name) => {
                write!(f, "unknown field {name:?}; expected header.NAME")?;
                DEFAULTS
                    .iter()
                    .map(|default| default.0)
                    .chain(OPERATION_FIELDS)
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
        }
    }
}

impl std::error::Error for FieldsError {}

/// Whether two field names are equal without regard to case, where `-` equals `_`.
pub(super) fn same_name(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| fold(*one) == fold(*other))
}

/// Normalises a letter of a name for comparison.
pub(super) fn fold(letter: u8) -> u8 {
    if letter == b'-' { b'_' } else { letter.to_ascii_lowercase() }
}

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
    }

    #[test]
    fn names_are_compared_without_regard_to_spelling() {
        assert!(same_name(b"User-Agent", b"user_agent"));
        assert!(!same_name(b"user", b"user_"));
    }
}
