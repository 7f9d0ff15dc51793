//! What answers are made of.

use serde_json::{Map, Value, json};
use tollgate::{Reason, Source};
use tollgate_engine::ResponseKind;

use super::super::forward::DenialKind;
use super::super::problem::ProblemKind;
use super::envoy;
use super::fields::{self, ID};

/// What requests and answers are made of, by name: fields of requests in small letters.
pub(super) fn all() -> Value {
    let reference = |text: &str| json!({ "$ref": format!("#/components/schemas/{text}") });
    let either = json!({
        "description": "Decisions, if checks were asked.",
        "oneOf": [reference("Decision"), reference("Decisions")],
    });
    let answers = [
        ("Decision", decision(ResponseKind::Verdict)),
        ("Decisions", decisions()),
        ("DecisionOrDecisions", either),
        ("Change", decision(ResponseKind::Change)),
        ("Inspection", inspection()),
        ("Problem", problem()),
        ("Denial", denial()),
    ];
    let answers = answers.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields::all().chain(answers).chain(envoy::schemas()).collect())
}

fn seconds(description: &str) -> Value {
    json!({ "type": "number", "minimum": 0, "description": description })
}

fn seconds_or_null(description: &str) -> Value {
    json!({ "type": ["number", "null"], "minimum": 0, "description": description })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn truth(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn id(description: &str) -> Value {
    json!({ "type": "string", "pattern": ID, "description": description })
}

/// An object of these members, all of which it has, and of those it may have.
fn object(description: &str, always: Vec<(&str, Value)>, sometimes: Vec<(&str, Value)>) -> Value {
    let required: Vec<_> = always.iter().map(|(name, _)| (*name).to_owned()).collect();
    let members = always.into_iter().chain(sometimes);
    let properties: Map<_, _> = members.map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn list(of: Value, description: &str) -> Value {
    json!({ "type": "array", "items": of, "description": description })
}

const ALLOWED: &str = "Whether the request may go on.";
const REMAINING: &str = "What could still be spent at once.";
const RETRY_AFTER: &str = "With no other traffic the same cost is denied before this and admitted at \
    it; null if it was admitted or never will be.";
const RESET_AFTER: &str = "Until no later decision can differ from an unknown key's.";

fn decision(response: ResponseKind) -> Value {
    let reasons = [
        Reason::Limit,
        Reason::Never,
        Reason::Blocked,
        Reason::DenyList,
        Reason::AllowList,
        Reason::Store,
    ];
    let sources = [Source::Store, Source::Lease, Source::DenyCache, Source::Fallback];
    let mut always = vec![
        ("allowed", truth(ALLOWED)),
        ("reason", json!({ "type": "string", "enum": reasons.map(Reason::as_str) })),
        ("policy", json!({ "type": "string", "description": "The policy's name." })),
        ("capacity", count("The capacity of the limit that binds.")),
        ("remaining", count(REMAINING)),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
        ("never", truth("The cost is above a capacity: waiting does not help.")),
        ("reset_after", seconds_or_null(RESET_AFTER)),
        ("delay", seconds("How long to wait before acting, once admitted.")),
        ("granted", count("What was charged, or given back.")),
        ("source", json!({ "type": "string", "enum": sources.map(Source::as_str) })),
        ("degraded", truth("Whether a failure of the store decided.")),
        ("replayed", truth("Whether this is the remembered answer to the same request id.")),
        ("time", seconds("The store's time, since the Unix epoch.")),
        ("limits", list(limit(), "What each limit said, in the policy's order.")),
    ];
    let description = match response {
        ResponseKind::Verdict | ResponseKind::Preview | ResponseKind::Inspection => {
            "The answer to a check."
        }
        ResponseKind::Change => {
            always.push(("changed", truth("Whether anything changed.")));
            "What was done."
        }
    };
    let sometimes = vec![
        ("lease_id", id("The lease that was taken, renewed or released.")),
        ("reservation_id", id("The reservation that was made or cancelled.")),
    ];
    object(description, always, sometimes)
}

fn limit() -> Value {
    let always = vec![
        ("limit", json!({ "type": "string", "description": "In the notation." })),
        ("allowed", truth("Whether this limit alone admits.")),
        ("binding", truth("Whether it speaks for the policy.")),
        ("capacity", count("The most it can hold.")),
        ("remaining", count(REMAINING)),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
        ("reset_after", seconds(RESET_AFTER)),
    ];
    let shadow = json!({ "const": true, "description": "Shadow mode: the policy reports what it would do and denies nothing." });
    object("What a limit said.", always, vec![("shadow", shadow)])
}

fn decisions() -> Value {
    let reference = json!({ "$ref": "#/components/schemas/Decision" });
    let always = vec![
        ("allowed", truth(ALLOWED)),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
        ("never", truth("A cost is above a capacity: waiting does not help.")),
        ("decisions", list(reference, "Of each check, in order.")),
    ];
    object("The answer to checks that were decided together.", always, vec![])
}

fn inspection() -> Value {
    let ends_after = || seconds("Until it ends.");
    let cost = || count("What it holds.");
    let block = object(
        "A block.",
        vec![("ends_after", seconds_or_null("Until it ends; null if never."))],
        vec![],
    );
    let lease = object(
        "A lease.",
        vec![("lease_id", id("Its id.")), ("cost", cost()), ("ends_after", ends_after())],
        vec![],
    );
    let held = vec![
        ("limit", json!({ "type": "string", "description": "In the notation." })),
        ("capacity", count("The most it can hold.")),
        ("used", count("What is used of it.")),
        ("remaining", count(REMAINING)),
        ("reset_after", seconds(RESET_AFTER)),
        ("leases", list(lease, "The leases that are held.")),
    ];
    let reservation = vec![
        ("reservation_id", id("Its id.")),
        ("cost", cost()),
        ("acts_after", seconds("Until it acts.")),
    ];
    let always = vec![
        ("policy", json!({ "type": "string", "description": "The policy's name." })),
        ("block", json!({ "oneOf": [{ "type": "null" }, block] })),
        ("limits", list(object("What a limit holds.", held, vec![]), "In the policy's order.")),
        (
            "reservations",
            list(object("A reservation.", reservation, vec![]), "Those that have not acted yet."),
        ),
        ("time", seconds("The store's time, since the Unix epoch.")),
    ];
    object("What is kept of a key.", always, vec![])
}

fn problem() -> Value {
    let types: Vec<_> = ProblemKind::ALL.iter().map(|x| x.uri()).collect();
    let text = |description: &str| json!({ "type": "string", "description": description });
    let always = vec![
        ("type", json!({ "type": "string", "enum": types })),
        ("title", text("The same for all problems of the type.")),
        ("status", json!({ "type": "integer", "minimum": 400, "maximum": 599 })),
        ("detail", text("What is wrong, and what to do about it.")),
    ];
    let sometimes = vec![
        ("field", text("The field at fault.")),
        ("value", json!({ "description": "Its value; the beginning of a long one as a text." })),
    ];
    object("Why there is no decision (RFC 9457).", always, sometimes)
}

fn denial() -> Value {
    let types = DenialKind::ALL.map(DenialKind::uri);
    let text = |description: &str| json!({ "type": "string", "description": description });
    let names = json!({ "type": "string" });
    let always = vec![
        ("type", json!({ "type": "string", "enum": types })),
        ("title", text("The same for all denials of the type.")),
        ("status", json!({ "type": "integer", "enum": [401, 403, 429] })),
        ("detail", text("Why, and whether to try again.")),
        (
            "violated-policies",
            list(
                names,
                "What denies, by the names that RateLimit-Policy has: policies, or of a \
                policy with several limits the limit as api.2. Empty where the rules deny.",
            ),
        ),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
    ];
    object("What a gateway's client may know of a denial (RFC 9457), below 1 KiB.", always, vec![])
}
