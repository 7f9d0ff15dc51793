//! The audit: a line for each operator's verb, also where it was refused.

use std::sync::OnceLock;

use tollgate::{Decision, Operation};

use crate::listener::Remote;

/// What is known of an operator's request, to be written as one line when it ends, however it
/// does. The lines are of the target `audit`, and have that word where lines for people show no
/// target; the log adds the time.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    verb: &'static str,
    who: &'a str,
    remote: &'a Remote,
    subject: OnceLock<Subject>,
    /// The numbers that were asked with the verb.
    asked: OnceLock<String>,
    done: OnceLock<Done>,
    is_written: bool,
}

/// What it is about, as it was written: there need be no such policy.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) policy: String,
    /// As it may be shown.
    pub(crate) key: String,
}

/// What the store said.
#[derive(Clone, Copy, Debug)]
struct Done {
    changed: bool,
    granted: u64,
    replayed: bool,
}

impl From<&Decision> for Done {
    fn from(it: &Decision) -> Self {
        Done { changed: it.changed, granted: it.granted, replayed: it.replayed }
    }
}

/// The numbers that are asked with a verb: how much, or for how long.
fn asked(verb: &Operation, cost: u64) -> String {
    match verb {
        Operation::Block { span: Some(span) } => format!("for {span} s"),
        Operation::Block { span: None } => "for ever".to_owned(),
        Operation::Refund { .. } | Operation::Penalize => format!("cost {cost}"),
        _ => String::new(),
    }
}

impl<'a> Record<'a> {
    /// Of a verb, asked by somebody from somewhere.
    pub(crate) fn new(verb: &'static str, who: &'a str, remote: &'a Remote) -> Self {
        let (subject, asked, done) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Record { verb, who, remote, subject, asked, done, is_written: false }
    }

    /// Tells what it is about.
    pub(crate) fn is_about(&self, subject: Subject) {
        self.subject.get_or_init(|| subject);
    }

    /// Tells what is asked of the store.
    pub(crate) fn asks(&self, verb: &Operation, cost: u64) {
        self.asked.get_or_init(|| asked(verb, cost));
    }

    /// Tells what the store has said.
    pub(crate) fn is_decided(&self, decision: &Decision) {
        self.done.get_or_init(|| decision.into());
    }

    /// Writes that it was done.
    pub(crate) fn done(mut self) {
        self.write("done", "");
    }

    /// Writes that it was not for them.
    pub(crate) fn refused(mut self, why: &str) {
        self.write("refused", why);
    }

    /// Writes that it could not be done.
    pub(crate) fn failed(mut self, why: &str) {
        self.write("failed", why);
    }

    fn write(&mut self, outcome: &'static str, why: &str) {
        self.is_written = true;
        let about = self.subject.get();
        let done = self.done.get();
        tracing::info!(
            target: "audit",
            who = self.who,
            peer = %self.remote,
            verb = self.verb,
            policy = about.map(|it| &*it.policy),
            key = about.map(|it| &*it.key),
            asked = self.asked.get().map(|it| &**it),
            outcome,
            changed = done.map(|it| it.changed),
            granted = done.map(|it| it.granted),
            replayed = done.map(|it| it.replayed),
            why,
            "audit",
        );
    }
}

/// A peer that leaves before its answer does not escape the audit.
impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.write("unknown", "the peer left before it was answered");
        }
    }
}
