//! What the client of a gateway is told of a denial: the policy and the wait, never the key.

use hyper::StatusCode;
use tollgate::{Answer, Decision, Micros, Policy};

use crate::http::problem::quoted;
use crate::http::reply::{self, Reply};
use crate::http::writer::Writer;
use crate::rules::NoValue;

/// What the client of a gateway is told of a denial.
#[derive(Debug)]
pub(super) struct Denial<'a> {
    detail: String,
    policy: Option<&'a str>,
    retry_after: Option<Micros>,
}

impl<'a> Denial<'a> {
    /// Of decisions under these policies, if one of them denies: of the one that denies longest.
    pub(super) fn of(policies: &[&'a Policy], answer: &Answer) -> Option<Self> {
        let denied = policies.iter().zip(&answer.decisions).filter(|(_, it)| !it.allowed);
        let (policy, longest) =
            denied.max_by_key(|(_, it)| (it.retry_after.is_none(), it.retry_after))?;
        let retry_after = answer.retry_after();
        let detail = format!("{} {}", policy.name(), said(longest));
        Some(Denial { detail, policy: Some(policy.name()), retry_after })
    }

    /// Of a request that no rule is for.
    pub(super) fn of_no_rule() -> Self {
        Denial { detail: "no rule is for this request".to_owned(), policy: None, retry_after: None }
    }

    /// Of a request without a key.
    pub(super) fn of_no_key(why: &NoValue) -> Self {
        Denial { detail: why.to_string(), policy: None, retry_after: None }
    }

    pub(super) fn reply(&self, status: StatusCode) -> Reply {
        let mut json = Writer::with_capacity(256);
        json.put(r#"{"type":"/problems/denied","title":"The request is denied","status":"#, {
            u64::from(status.as_u16())
        });
        json.text(r#","detail":"#);
        json.text(&quoted(&self.detail));
        // No name of a policy holds what JSON escapes.
        json.put(r#","policy":"#, self.policy);
        json.put(r#","retry_after":"#, self.retry_after);
        json.text("}");
        reply::denial(status, json.finish(), self.retry_after)
    }
}

fn said(decision: &Decision) -> &'static str {
    match decision.retry_after {
        _ if decision.degraded => "denies while its store gives no answer",
        _ if decision.never => "never admits this; trying again does not help",
        Some(_) => "admits no more for now; try again later",
        None => "does not admit this",
    }
}
