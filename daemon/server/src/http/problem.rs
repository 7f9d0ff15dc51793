//! Why a request got no decision, as `application/problem+json` (RFC 9457).

use std::fmt::Write;

use hyper::StatusCode;
use tollgate::{Policy, RequestError, ResolveError, StoreError};

use super::field::Field;

/// What kind of problem it is; each has a status, a type and a title of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    BadInput,
    Unauthorized,
    Forbidden,
    TokenLacks,
    UnknownPolicy,
    UnknownPath,
    Method,
    BodyTimeout,
    RequestIdReused,
    BodyTooLarge,
    NoDecision,
    StoreUnavailable,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Kind; 12] = [
        Kind::BadInput,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::TokenLacks,
        Kind::UnknownPolicy,
        Kind::UnknownPath,
        Kind::Method,
        Kind::BodyTimeout,
        Kind::RequestIdReused,
        Kind::BodyTooLarge,
        Kind::NoDecision,
        Kind::StoreUnavailable,
    ];

    pub(super) const fn status(self) -> StatusCode {
        self.parts().0
    }

    pub(super) const fn title(self) -> &'static str {
        self.parts().2
    }

    /// Its type.
    pub(super) fn uri(self) -> String {
        format!("/problems/{}", self.parts().1)
    }

    /// Its status, the last part of its type, its title.
    const fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Kind::BadInput => {
                (StatusCode::BAD_REQUEST, "bad-input", "The request cannot be decided")
            }
            Kind::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "A token is needed"),
            Kind::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "Not allowed from there"),
            Kind::TokenLacks => (StatusCode::FORBIDDEN, "token-lacks", "The token is not for that"),
            Kind::UnknownPolicy => {
                (StatusCode::NOT_FOUND, "unknown-policy", "There is no such policy")
            }
            Kind::UnknownPath => (StatusCode::NOT_FOUND, "unknown-path", "There is no such path"),
            Kind::Method => {
                (StatusCode::METHOD_NOT_ALLOWED, "method", "The path has no such method")
            }
            Kind::BodyTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "body-timeout", "The body did not come in time")
            }
            Kind::RequestIdReused => {
                (StatusCode::CONFLICT, "request-id-reused", "The request id was used before")
            }
            Kind::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The body is too large")
            }
            Kind::NoDecision => {
                (StatusCode::INTERNAL_SERVER_ERROR, "no-decision", "No decision was made")
            }
            Kind::StoreUnavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", "The store gave no answer")
            }
        }
    }
}

/// A problem, with the field at fault where there is one.
#[derive(Clone, Debug)]
pub(crate) struct Problem(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    kind: Kind,
    detail: String,
    field: Option<String>,
    /// As JSON.
    value: Option<String>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Problem(Box::new(Parts { kind, detail, field: None, value: None, allow: None }))
    }

    /// Bad input; `detail` says what to write instead.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Problem::new(Kind::BadInput, detail)
    }

    /// Names the field at fault.
    pub(super) fn of(mut self, field: Field) -> Self {
        self.0.field = Some(field.name().to_owned());
        self
    }

    /// Names a field that is none of ours.
    pub(super) fn of_unknown(mut self, field: &str) -> Self {
        self.0.field = Some(field.chars().take(MAX_SHOWN).collect());
        self
    }

    /// Shows the value at fault, given as JSON; the beginning of a long one.
    pub(super) fn with_value(mut self, json: &str) -> Self {
        // What a parser may stumble over, such as half a surrogate pair, is shown as a text.
        let plain = |json| serde_json::from_str::<serde_json::Value>(json).is_ok();
        let as_it_is = json.len() <= MAX_SHOWN && plain(json);
        self.0.value = Some(if as_it_is { json.to_owned() } else { beginning(json) });
        self
    }

    /// Names the policy, if that is the field at fault.
    pub(super) fn with_policy(self, policy: &Policy) -> Self {
        match self.0.field.as_deref() {
            Some("policy") if self.0.value.is_none() => self.with_value(&quoted(policy.name())),
            _ => self,
        }
    }

    /// Says which element of `checks` the field is of.
    pub(super) fn in_check(mut self, index: usize) -> Self {
        let within = self.0.field.take().map_or(String::new(), |field| format!(".{field}"));
        self.0.field = Some(format!("checks[{index}]{within}"));
        self
    }

    /// Names the methods that the path has.
    pub(super) fn allowing(mut self, methods: &'static str) -> Self {
        self.0.allow = Some(methods);
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.kind.status()
    }

    /// Whether the request itself is at fault.
    pub(super) fn is_bad_input(&self) -> bool {
        self.0.kind == Kind::BadInput
    }

    /// Whether it is about who asks.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.0.kind, Kind::Unauthorized | Kind::Forbidden | Kind::TokenLacks)
    }

    /// What kind it is.
    pub(crate) fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Why.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The value of `Allow`.
    pub(super) fn allow(&self) -> Option<&'static str> {
        self.0.allow
    }

    /// Whether some of the request is still to come, so that the connection cannot be used again.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.0.kind, Kind::BodyTimeout | Kind::BodyTooLarge)
    }

    pub(super) fn to_json(&self) -> String {
        let kind = self.0.kind;
        let mut json = format!(
            r#"{{"type":"{}","title":"{}","status":{},"detail":{}"#,
            kind.uri(),
            kind.title(),
            kind.status().as_u16(),
            quoted(&self.0.detail)
        );
        if let Some(field) = &self.0.field {
            let _ = write!(json, r#","field":{}"#, quoted(field));
        }
        if let Some(value) = &self.0.value {
            let _ = write!(json, r#","value":{value}"#);
        }
        json.push('}');
        json
    }
}

/// The most bytes of a value or of a name that an answer shows.
pub(super) const MAX_SHOWN: usize = 128;

/// The beginning of JSON as a text.
fn beginning(json: &str) -> String {
    let shown: String = json.chars().take(MAX_SHOWN).collect();
    quoted(&if shown.len() < json.len() { format!("{shown}…") } else { shown })
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl From<ResolveError> for Problem {
    fn from(it: ResolveError) -> Self {
        match it {
            ResolveError::Tier(tier) => Problem::bad(tier.to_string()).of(Field::Tier),
            other => Problem::new(Kind::UnknownPolicy, other.to_string()).of(Field::Policy),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(it: StoreError) -> Self {
        match it {
            StoreError::Request(request) => request.into(),
            other => Problem::new(Kind::StoreUnavailable, other.to_string()),
        }
    }
}

impl From<RequestError> for Problem {
    fn from(it: RequestError) -> Self {
        let (kind, field) = match it {
            RequestError::RequestIdReused => (Kind::RequestIdReused, Field::RequestId),
            RequestError::RequestId => (Kind::BadInput, Field::RequestId),
            RequestError::EmptyKey | RequestError::LongKey(_) => (Kind::BadInput, Field::Key),
            RequestError::ZeroAmount(_) => (Kind::BadInput, Field::Cost),
            RequestError::NeedsLease => (Kind::BadInput, Field::LeaseId),
            RequestError::NotReservable(_)
            | RequestError::Concurrent(_)
            | RequestError::NotConcurrent(_) => (Kind::BadInput, Field::Policy),
            _ => (Kind::BadInput, Field::Checks),
        };
        let problem = Problem::new(kind, it.to_string()).of(field);
        if field == Field::Cost { problem.with_value("0") } else { problem }
    }
}
