//! Errors as `application/problem+json` (RFC 9457).

use std::fmt::Write;

use hyper::StatusCode;
use tollgate_engine::{Error, ErrorKind, ErrorValue, MAX_QUOTED_LEN};

/// Defines [`ProblemKind`] by a table: the status, the last segment of the type, and the title.
macro_rules! problem_kinds {
    ($($(#[$doc:meta])* $kind:ident: $status:ident $segment:literal $title:literal;)*) => {
        /// The type of a problem; each has its own status and title.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ProblemKind {
            $($(#[$doc])* $kind,)*
        }

        impl ProblemKind {
            /// Every kind.
            pub(super) const ALL: &[ProblemKind] = &[$(ProblemKind::$kind),*];

            const fn parts(self) -> (StatusCode, &'static str, &'static str) {
                match self {
                    $(ProblemKind::$kind => (StatusCode::$status, $segment, $title),)*
                }
            }
        }
    };
}

problem_kinds! {
    /// The request is invalid.
    BadInput: BAD_REQUEST "bad-input" "The request cannot be decided";
    /// A valid token is required.
    Unauthorized: UNAUTHORIZED "unauthorized" "A token is required";
    /// The daemon does not accept the request from this client.
    Forbidden: FORBIDDEN "forbidden" "Not accepted from this client";
    /// The token lacks a scope or the policy.
    TokenLacks: FORBIDDEN "token-lacks" "The token lacks a right";
    /// No policy has this name.
    UnknownPolicy: NOT_FOUND "unknown-policy" "Unknown policy";
    /// No resource is at this path.
    UnknownPath: NOT_FOUND "unknown-path" "Unknown path";
    /// The path does not support the method.
    Method: METHOD_NOT_ALLOWED "method" "The path does not support the method";
    /// The body did not arrive in time.
    BodyTimeout: REQUEST_TIMEOUT "body-timeout" "The body did not arrive in time";
    /// Another request had the same request id.
    RequestIdReused: CONFLICT "request-id-reused" "The request id was used before";
    /// No charge is known for the request id of a settlement.
    UnknownCharge: NOT_FOUND "unknown-charge" "Unknown charge";
    /// The charge was settled with another cost.
    ChargeSettled: CONFLICT "charge-settled" "The charge is settled already";
    /// The body exceeds the limit.
    BodyTooLarge: PAYLOAD_TOO_LARGE "body-too-large" "The body is too large";
    /// The gateway sent no request that can be decided.
    NoDecision: INTERNAL_SERVER_ERROR "no-decision" "No decision was made";
    /// The store did not answer.
    StoreUnavailable: SERVICE_UNAVAILABLE "store-unavailable" "The store did not answer";
}

impl ProblemKind {
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
}

/// An error response, with the field at fault where there is one.
#[derive(Clone, Debug)]
pub struct Problem(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    kind: ProblemKind,
    detail: String,
    field: Option<String>,
    /// As JSON.
    value: Option<String>,
    allow: Option<&'static str>,
}

impl Problem {
    /// A problem of this kind; `detail` says how to fix it.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Problem(Box::new(Parts { kind, detail, field: None, value: None, allow: None }))
    }

    /// An invalid request; `detail` says how to fix it.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(ProblemKind::BadInput, detail)
    }

    /// Names the field at fault.
    pub(super) fn at(mut self, field: &str) -> Self {
        self.0.field = Some(field.to_owned());
        self
    }

    /// Names an unknown field, as the client wrote it.
    pub(super) fn at_unknown(mut self, field: &str) -> Self {
        self.0.field = Some(field.chars().take(MAX_QUOTED_LEN).collect());
        self
    }

    /// Adds the value at fault, given as JSON; the beginning of a long one.
    pub(super) fn with_value(mut self, json: &str) -> Self {
        // JSON that parsers may reject, such as half a surrogate pair, is shown as a string.
        let is_valid = || serde_json::from_str::<serde_json::Value>(json).is_ok();
        let fits = json.len() <= MAX_QUOTED_LEN && is_valid();
        self.0.value = Some(if fits { json.to_owned() } else { quoted(&shortened(json)) });
        self
    }

    /// Names the element of `checks` that the field belongs to.
    pub(super) fn in_check(mut self, index: usize) -> Self {
        let field = self.0.field.take().map_or(String::new(), |field| format!(".{field}"));
        self.0.field = Some(format!("checks[{index}]{field}"));
        self
    }

    /// Adds the methods that the path supports.
    pub fn with_allow(mut self, methods: &'static str) -> Self {
        self.0.allow = Some(methods);
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.kind.status()
    }

    /// Whether the request is invalid.
    pub fn is_bad_input(&self) -> bool {
        self.0.kind == ProblemKind::BadInput
    }

    /// Whether the client lacks a right.
    pub(super) fn is_denial(&self) -> bool {
        matches!(
            self.0.kind,
            ProblemKind::Unauthorized | ProblemKind::Forbidden | ProblemKind::TokenLacks
        )
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    /// The explanation, with the remedy.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The value of the header `Allow`.
    pub(super) fn allow(&self) -> Option<&'static str> {
        self.0.allow
    }

    /// Whether a part of the request was not read, so that the connection cannot be reused.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.0.kind, ProblemKind::BodyTimeout | ProblemKind::BodyTooLarge)
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

/// The beginning of a text that may be long.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED_LEN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::BadRequest => ProblemKind::BadInput,
            ErrorKind::Unauthenticated => ProblemKind::Unauthorized,
            ErrorKind::NotOperator => ProblemKind::Forbidden,
            ErrorKind::InsufficientToken => ProblemKind::TokenLacks,
            ErrorKind::UnknownPolicy => ProblemKind::UnknownPolicy,
            ErrorKind::RequestIdReused => ProblemKind::RequestIdReused,
            ErrorKind::UnknownCharge => ProblemKind::UnknownCharge,
            ErrorKind::ChargeSettled => ProblemKind::ChargeSettled,
            ErrorKind::StoreUnavailable => ProblemKind::StoreUnavailable,
        };
        let mut problem = Problem::new(kind, error.detail());
        if let Some(parameter) = error.parameter() {
            problem = problem.at(parameter.name());
        }
        match error.value() {
            None => problem,
            Some(ErrorValue::Text(text)) => problem.with_value(&quoted(text)),
            Some(ErrorValue::Number(number)) => problem.with_value(&number.to_string()),
        }
    }
}
