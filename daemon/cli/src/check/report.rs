//! An answer in words.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::question::Question;

/// A decision, with times as they were written: no float comes near them.
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
    limits: Vec<LimitReport>,
}

/// What one limit said.
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
    pub(super) fn read(answer: &str) -> Result<Self> {
        serde_json::from_str(answer).context("the answer is not a decision")
    }

    /// One line, and with `explain` one for each limit.
    pub(super) fn text(&self, question: &Question, explain: bool, colours: bool) -> String {
        let (mark, colour) =
            if self.allowed { ("✓ allowed", GREEN) } else { ("✗ denied", RED) };
        let mark = if colours { format!("{colour}{mark}{PLAIN}") } else { mark.to_owned() };
        // What a key holds must not move the cursor.
        let key = String::from_utf8_lossy(question.key()).escape_debug().to_string();
        let mut words = vec![mark, key];
        if !question.is_limit {
            words.push(self.policy.clone());
        }
        if let Some(binding) = self.limits.iter().find(|limit| limit.binding) {
            words.push(binding.limit.clone());
            words.push(format!("{} left", self.remaining));
        }
        words.extend(self.tail(question));
        let mut text = words.join("  ");
        text.push('\n');
        if explain {
            self.limits.iter().for_each(|limit| text.push_str(&limit.explained()));
        }
        text
    }

    /// What is to be said besides: when, or why not.
    fn tail(&self, question: &Question) -> Option<String> {
        let again =
            self.retry_after.as_ref().map(|retry_after| format!("again in {}s", retry_after.get()));
        match &*self.reason {
            "allow_list" => Some("on the allow list".to_owned()),
            "deny_list" => Some("on the deny list".to_owned()),
            "blocked" => {
                let until = again.unwrap_or_else(|| "until it is unblocked".to_owned());
                Some(format!("blocked, {until}"))
            }
            _ if self.degraded => {
                Some("its store gave no answer, so on_store_error did".to_owned())
            }
            _ if self.never => {
                Some(format!("never: a cost of {} is above {}", question.cost.get(), self.capacity))
            }
            _ if !self.allowed => again,
            _ if self.delay.get() != "0" => Some(format!("act in {}s", self.delay.get())),
            _ => self.lease_id.as_ref().map(|lease_id| format!("lease {lease_id}")),
        }
    }
}

impl LimitReport {
    fn explained(&self) -> String {
        let used = self.capacity.saturating_sub(self.remaining);
        let says = match (&self.retry_after, self.allowed) {
            (_, true) => "admits".to_owned(),
            (Some(value), false) => format!("denies for {}s", value.get()),
            (None, false) => "never admits so much".to_owned(),
        };
        let recovers = match self.reset_after.get() {
            "0" => String::new(),
            time => format!(", all of it back in {time}s"),
        };
        let binding = if self.binding { "  (binding)" } else { "" };
        let (limit, capacity) = (&self.limit, self.capacity);
        format!("  {limit}: {says}; {used} of {capacity} used{recovers}{binding}\n")
    }
}
