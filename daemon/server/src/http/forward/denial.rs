//! What the client of a gateway is told of a denial: what denied, and the wait; never the key.

use hyper::StatusCode;
use tollgate::{Answer, Decision, Micros, Policy, Reason};

use crate::http::headers;
use crate::http::problem::{MAX_SHOWN, quoted};
use crate::http::reply::{self, Reply};
use crate::http::writer::Writer;
use crate::rules::KeyError;

/// The most bytes of the names that a body has: whatever else it says, it stays below 1 KiB.
const MAX_NAME_BYTES: usize = 512;

/// Why a request is denied: the type of its body, whose title is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum DenialKind {
    /// A limit denies. Type and `violated-policies` are those that
    /// draft-ietf-httpapi-ratelimit-headers-11 asks IANA for.
    QuotaExceeded,
    /// Anything else denies: a list, a block, the rules, or a policy whose store gives no answer.
    Denied,
}

impl DenialKind {
    pub(in crate::http) const ALL: [DenialKind; 2] =
        [DenialKind::QuotaExceeded, DenialKind::Denied];

    pub(in crate::http) const fn uri(self) -> &'static str {
        match self {
            DenialKind::QuotaExceeded => {
                "https://iana.org/assignments/http-problem-types#quota-exceeded"
            }
            DenialKind::Denied => "/problems/denied",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            DenialKind::QuotaExceeded => "The quota is exceeded",
            DenialKind::Denied => "The request is denied",
        }
    }
}

/// What the client of a gateway is told of a denial.
#[derive(Debug)]
pub(super) struct Denial {
    kind: DenialKind,
    detail: String,
    /// What denies, by the names that the headers have, as JSON.
    violated: Vec<String>,
    retry_after: Option<Micros>,
}

impl Denial {
    /// Of decisions under these policies, if one of them denies.
    pub(super) fn of(policies: &[&Policy], answer: &Answer) -> Option<Self> {
        let denied = || answer.decisions.iter().filter(|decision| !decision.allowed);
        denied().next()?;
        let by_limit = denied().any(|x| matches!(x.reason, Reason::Limit | Reason::Never));
        let retry_after = answer.retry_after();
        let detail = match retry_after {
            _ if denied().any(|x| x.degraded) => {
                "the limits cannot be asked at the moment; try again later".to_owned()
            }
            Some(wait) => format!("try again in {wait} s"),
            None => "waiting does not help".to_owned(),
        };
        Some(Denial {
            kind: if by_limit { DenialKind::QuotaExceeded } else { DenialKind::Denied },
            detail,
            violated: violated(policies.iter().copied().zip(&answer.decisions)),
            retry_after,
        })
    }

    /// Of a request that no rule is for.
    pub(super) fn of_no_rule() -> Self {
        Denial::of_rules("no rule is for this request".to_owned())
    }

    /// Of a request without a key.
    pub(super) fn of_no_key(why: &KeyError) -> Self {
        Denial::of_rules(why.to_string())
    }

    fn of_rules(detail: String) -> Self {
        Denial { kind: DenialKind::Denied, detail, violated: Vec::new(), retry_after: None }
    }

    pub(super) fn reply(&self, status: StatusCode) -> Reply {
        let mut json = Writer::with_capacity(256);
        json.put(r#"{"type":"#, self.kind.uri());
        json.put(r#","title":"#, self.kind.title());
        json.put(r#","status":"#, u64::from(status.as_u16()));
        json.text(r#","detail":"#);
        json.text(&quoted(&beginning(&self.detail)));
        json.list(r#","violated-policies":"#, &self.violated, |json, j| json.text(j));
        json.put(r#","retry_after":"#, self.retry_after);
        json.text("}");
        reply::denial(status, json.finish(), self.retry_after)
    }
}

/// The names of what denies as JSON, each once, as many of them as there is room for.
fn violated<'a>(decisions: impl Iterator<Item = (&'a Policy, &'a Decision)>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut bytes: usize = 0;
    for name in headers::violated(decisions).map(|x| quoted(&x)) {
        if names.contains(&name) {
            continue;
        }
        bytes = bytes.saturating_add(name.len()).saturating_add(1);
        if bytes > MAX_NAME_BYTES {
            break;
        }
        names.push(name);
    }
    names
}

/// The beginning of a detail that is long, since the names of headers and claims are in it. A
/// character is at most six bytes of JSON.
fn beginning(detail: &str) -> String {
    let mut shown: String = detail.chars().take(MAX_SHOWN).collect();
    if shown.len() < detail.len() {
        shown.push('…');
    }
    shown
}
