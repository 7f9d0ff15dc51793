//! A decision as text.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::CheckRequest;
use crate::subject::SubjectKind;

/// A decision. Times stay text, so that they are exact.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) allowed: bool,
    reason: String,
    policy: String,
    capacity: u64,
    remaining: u64,
    retry_after: Option<Box<RawValue>>,
    never: bool,
    degraded: bool,
    delay: Box<RawValue>,
    lease_id: Option<String>,
    pub(super) hint: Option<String>,
    limits: Vec<LimitReport>,
}

/// The result of one limit.
#[derive(Debug, Deserialize)]
struct LimitReport {
    limit: String,
    allowed: bool,
    binding: bool,
    capacity: u64,
    remaining: u64,
    retry_after: Option<Box<RawValue>>,
    reset_after: Box<RawValue>,
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

impl Report {
    pub(super) fn parse(decision: &str) -> Result<Self> {
        serde_json::from_str(decision).context("the response is not a decision")
    }

    /// Whether the limits admit the key, and have counted nothing for it.
    pub(super) fn is_unused(&self) -> bool {
        self.reason == "ok"
            && !self.limits.is_empty()
            && self.limits.iter().all(|limit| limit.reset_after.get() == "0")
    }

    /// One line, and with `explain` another for each limit.
    pub(super) fn text(&self, request: &CheckRequest, explain: bool, colours: bool) -> String {
        let (mark, colour) =
            if self.allowed { ("✓ allowed", GREEN) } else { ("✗ denied", RED) };
        let mark = if colours { format!("{colour}{mark}{PLAIN}") } else { mark.to_owned() };
        let mut parts = vec![mark, request.subject.printable_key()];
        match request.subject.kind {
            SubjectKind::Policy => parts.push(self.policy.clone()),
            SubjectKind::Domain => parts.push(request.subject.policy.clone()),
            SubjectKind::Limit => {}
        }
        if let Some(binding) = self.limits.iter().find(|limit| limit.binding) {
            parts.push(binding.limit.clone());
            parts.push(format!("{} left", self.remaining));
        }
        parts.extend(self.hint(request));
        let mut text = parts.join("  ");
        text.push('\n');
        if explain {
            self.limits.iter().for_each(|limit| text.push_str(&limit.explanation()));
        }
        text
    }

    /// When to retry or act, or the reason of the decision.
    fn hint(&self, request: &CheckRequest) -> Option<String> {
        let retry =
            self.retry_after.as_ref().map(|retry_after| format!("again in {}s", retry_after.get()));
        match &*self.reason {
            "allow_list" => Some("on the allow list".to_owned()),
            "deny_list" => Some("on the deny list".to_owned()),
            "banned" if !self.never => Some(format!("banned, {}", retry.unwrap_or_default())),
            "blocked" => {
                let until = retry.unwrap_or_else(|| "until it is unblocked".to_owned());
                Some(format!("blocked, {until}"))
            }
            _ if self.degraded => Some("store unavailable, on_store_error applied".to_owned()),
            _ if self.never => {
                Some(format!("never: a cost of {} is above {}", request.cost.get(), self.capacity))
            }
            _ if !self.allowed => retry,
            _ if self.delay.get() != "0" => Some(format!("act in {}s", self.delay.get())),
            _ => self.lease_id.as_ref().map(|lease_id| format!("lease {lease_id}")),
        }
    }
}

impl LimitReport {
    fn explanation(&self) -> String {
        let used = self.capacity.saturating_sub(self.remaining);
        let result = match (&self.retry_after, self.allowed) {
            (_, true) => "admits".to_owned(),
            (Some(retry_after), false) => format!("denies for {}s", retry_after.get()),
            (None, false) => "never admits this cost".to_owned(),
        };
        let recovers = match self.reset_after.get() {
            "0" => String::new(),
            time => format!(", fully recovered in {time}s"),
        };
        let binding = if self.binding { "  (binding)" } else { "" };
        let (limit, capacity) = (&self.limit, self.capacity);
        format!("  {limit}: {result}; {used} of {capacity} used{recovers}{binding}\n")
    }
}
