//! Denials, as the client of a gateway sees them: the policies and the wait, never the key.

use hyper::StatusCode;
use tollgate::{Answer, Decision, Micros, Policy, Reason};

use crate::json::Writer;
use crate::problem::{quoted, shortened};
use crate::reply::{self, Reply, is_unavailable};

/// The most bytes of names in a body, so that it stays below 1 KiB.
const MAX_NAME_BYTES: usize = 512;

/// The type of a denial, which has a fixed title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialKind {
    /// A limit denies. Type and `violated-policies` are as in
    /// draft-ietf-httpapi-ratelimit-headers-11.
    QuotaExceeded,
    /// Anything else denies: a list, a block, the rules, or a policy while the store is
    /// unavailable.
    Denied,
}

impl DenialKind {
    pub(crate) const ALL: [DenialKind; 2] = [DenialKind::QuotaExceeded, DenialKind::Denied];

    pub(crate) const fn uri(self) -> &'static str {
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

/// A denial.
#[derive(Debug)]
pub(super) struct Denial {
    kind: DenialKind,
    detail: String,
    /// The names of the denying limits, as in the headers; JSON strings.
    violated: Vec<String>,
    retry_after: Option<Micros>,
}

impl Denial {
    /// The denial of an answer, if it denies.
    pub(super) fn from_decisions<'a>(
        decisions: impl Iterator<Item = (&'a Policy, &'a Decision)>,
        answer: &Answer,
    ) -> Option<Self> {
        let denied = || answer.decisions.iter().filter(|decision| !decision.allowed);
        denied().next()?;
        let is_by_limit = |denied: &Decision| {
            matches!(denied.reason, Reason::Limit | Reason::Never | Reason::Banned)
        };
        let by_limit = denied().any(is_by_limit);
        let retry_after = answer.retry_after();
        let detail = match retry_after {
            _ if denied().any(is_unavailable) => {
                "the limits are unavailable at the moment; try again later".to_owned()
            }
            Some(wait) => format!("try again in {wait} s"),
            None => "waiting does not help".to_owned(),
        };
        Some(Denial {
            kind: if by_limit { DenialKind::QuotaExceeded } else { DenialKind::Denied },
            detail,
            violated: violated(decisions),
            retry_after,
        })
    }

    /// The denial of a request that no rule matches, or that has no key.
    pub(super) fn from_rules(detail: String) -> Self {
        Denial { kind: DenialKind::Denied, detail, violated: Vec::new(), retry_after: None }
    }

    pub(super) fn reply(&self, status: StatusCode) -> Reply {
        let mut json = Writer::with_capacity(256);
        json.put(r#"{"type":"#, self.kind.uri());
        json.put(r#","title":"#, self.kind.title());
        json.put(r#","status":"#, u64::from(status.as_u16()));
        json.text(r#","detail":"#);
        // It may contain long names of headers and claims. JSON has up to six bytes a character.
        json.text(&quoted(&shortened(&self.detail)));
        json.list(r#","violated-policies":"#, &self.violated, |json, name| json.text(name));
        json.put(r#","retry_after":"#, self.retry_after);
        json.text("}");
        reply::denial(status, json.finish(), self.retry_after)
    }
}

/// The names of the denying limits, each once, as many as fit.
fn violated<'a>(decisions: impl Iterator<Item = (&'a Policy, &'a Decision)>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut bytes: usize = 0;
    for name in tollgate_headers::violated(decisions).map(|name| quoted(&name)) {
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
