//! The audit log: one line for each operator's request, whatever its outcome.

use tollgate::{Decision, Operation};

use crate::MAX_QUOTED_LEN;
use crate::active::ActiveConfig;
use crate::call::CheckRequest;
use crate::connection::Remote;
use crate::error::Error;

/// One operator's request, written as one line when it ends. Lines have the target `audit`; the
/// subscriber adds the time.
///
/// A record that is dropped before it ends is written too: a client cannot escape the audit by
/// closing its connection.
#[derive(Debug)]
pub struct AuditRecord<'a> {
    operation: &'static str,
    principal: &'a str,
    remote: &'a Remote,
    subject: Option<Subject>,
    /// The requested cost or duration.
    arguments: Option<String>,
    effect: Option<Effect>,
    is_written: bool,
}

/// The policy as the request names it, whether or not it exists, and the key as it may be shown.
#[derive(Debug)]
struct Subject {
    policy: String,
    key: String,
}

/// The effect of the operation.
#[derive(Clone, Copy, Debug)]
struct Effect {
    changed: bool,
    granted: u64,
    replayed: bool,
}

impl<'a> AuditRecord<'a> {
    /// Begins the record of an operation; `principal` is its originator's name.
    pub(crate) fn new(operation: &'static str, principal: &'a str, remote: &'a Remote) -> Self {
        AuditRecord {
            operation,
            principal,
            remote,
            subject: None,
            arguments: None,
            effect: None,
            is_written: false,
        }
    }

    /// Notes the policy and the key of the request, before either is known to be valid.
    pub fn set_subject(&mut self, active: &ActiveConfig, policy: &str, key: &[u8]) {
        self.subject = Some(Subject {
            policy: policy.chars().take(MAX_QUOTED_LEN).collect(),
            key: active.display_key(key),
        });
    }

    /// Notes the arguments of the operation.
    pub(crate) fn set_arguments(&mut self, operation: Operation, check: &CheckRequest<'_>) {
        let cost = check.cost.get();
        self.arguments = Some(match operation {
            Operation::Block { span: Some(span) } => format!("for {span} s"),
            Operation::Block { span: None } => "for ever".to_owned(),
            Operation::Refund { .. } | Operation::Penalize => format!("cost {cost}"),
            Operation::Reset | Operation::Unblock => String::new(),
            // An operator chose the limits of a check.
            _ => format!("{} cost {cost}", check.policy),
        });
    }

    /// Writes that the operation was executed.
    pub(crate) fn complete(mut self, decision: &Decision) {
        self.effect = Some(Effect {
            changed: decision.changed,
            granted: decision.granted,
            replayed: decision.replayed,
        });
        self.write("done", "");
    }

    /// Writes that the operation was refused for lack of rights, or failed.
    pub fn fail(mut self, is_denial: bool, detail: &str) {
        self.write(if is_denial { "refused" } else { "failed" }, detail);
    }

    /// As [`AuditRecord::fail`].
    pub(crate) fn fail_with(self, error: &Error) {
        self.fail(error.is_denial(), error.detail());
    }

    fn write(&mut self, outcome: &'static str, why: &str) {
        self.is_written = true;
        let subject = self.subject.as_ref();
        let effect = self.effect;
        tracing::info!(
            target: "audit",
            who = self.principal,
            peer = %self.remote,
            verb = self.operation,
            policy = subject.map(|subject| &*subject.policy),
            key = subject.map(|subject| &*subject.key),
            asked = self.arguments.as_deref(),
            outcome,
            changed = effect.map(|effect| effect.changed),
            granted = effect.map(|effect| effect.granted),
            replayed = effect.map(|effect| effect.replayed),
            why,
            "audit",
        );
    }
}

impl Drop for AuditRecord<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.write("unknown", "the client closed the connection before the response");
        }
    }
}
