//! The schemas of responses.

use serde_json::{Map, Value, json};
use tollgate::{Reason, Source};

use super::envoy;
use super::fields::{self, ID};
use super::parts::{described, list, schema_ref, text};
use super::usage;
use crate::forward::DenialKind;
use crate::problem::ProblemKind;

/// All schemas, by name: those of parameters have lower-case names.
pub(super) fn all() -> Value {
    let one_or_several = json!({
        "description": "Decisions, if the request has checks.",
        "oneOf": [schema_ref("Decision"), schema_ref("Decisions")],
    });
    let changes = json!({
        "description": "Results, if the request has checks.",
        "oneOf": [schema_ref("Change"), schema_ref("Changes")],
    });
    let responses = [
        ("Decision", decision()),
        ("Decisions", decisions()),
        ("DecisionOrDecisions", one_or_several),
        ("Change", change()),
        ("Changes", changes_of_checks()),
        ("ChangeOrChanges", changes),
        ("Inspection", inspection()),
        ("Usage", usage::totals()),
        ("Keys", usage::keys()),
        ("Problem", problem()),
        ("Denial", denial()),
    ];
    let responses = responses.into_iter().map(|(name, schema)| (name.to_owned(), schema));
    fields::all().chain(responses).chain(envoy::schemas()).collect()
}

pub(super) fn seconds(description: &str) -> Value {
    json!({ "type": "number", "minimum": 0, "description": description })
}

fn seconds_or_null(description: &str) -> Value {
    json!({ "type": ["number", "null"], "minimum": 0, "description": description })
}

pub(super) fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn boolean(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn id(description: &str) -> Value {
    json!({ "type": "string", "pattern": ID, "description": description })
}

/// An object with these required and optional members.
pub(super) fn object(
    description: &str,
    required: Vec<(&str, Value)>,
    optional: Vec<(&str, Value)>,
) -> Value {
    let names: Vec<_> = required.iter().map(|(name, _)| (*name).to_owned()).collect();
    let members = required.into_iter().chain(optional);
    let properties: Map<_, _> = members.map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": names,
        "additionalProperties": false,
    })
}

const ALLOWED: &str = "Whether the request is admitted.";
const REMAINING: &str = "The greatest cost that would be admitted now.";
const RETRY_AFTER: &str = "The time until the same cost would be admitted, without other traffic; \
    null if it was admitted or never will be.";
const RESET_AFTER: &str = "The time until the key decides as if it were unused.";
const EXCEEDS: &str = "Whether the cost exceeds a capacity, so that waiting does not help.";
const LIMIT: &str = "The limit, in the notation of the configuration.";
const HINT: &str = "Why the request may not have the effect that was meant: nothing is counted for \
    the key, or the policy does not have the tier.";
const REPLAYED: &str =
    "Whether this is the stored answer to an earlier request with the same request id.";
const TIME: &str = "The store's time, since the Unix epoch.";

fn decision() -> Value {
    let reasons = [
        Reason::Limit,
        Reason::Never,
        Reason::Blocked,
        Reason::Banned,
        Reason::DenyList,
        Reason::AllowList,
        Reason::Store,
    ]
    .map(Reason::as_str);
    let reasons: Vec<&str> = ["ok"].into_iter().chain(reasons).collect();
    let sources = [Source::Store, Source::Lease, Source::DenyCache, Source::Fallback];
    let required = vec![
        ("allowed", boolean(ALLOWED)),
        ("reason", json!({ "type": "string", "enum": reasons })),
        ("policy", text("The policy's name.")),
        ("capacity", count("The capacity of the binding limit.")),
        ("remaining", count(REMAINING)),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
        ("never", boolean(EXCEEDS)),
        ("reset_after", seconds_or_null(RESET_AFTER)),
        ("delay", seconds("How long to wait before acting, once admitted.")),
        ("granted", count("The cost that was charged.")),
        ("source", json!({ "type": "string", "enum": sources.map(Source::as_str) })),
        ("degraded", boolean("Whether the decision was made without the store.")),
        ("replayed", boolean(REPLAYED)),
        ("time", seconds(TIME)),
        ("limits", described(list(limit()), "The decision of each limit, in the policy's order.")),
    ];
    let optional = vec![
        ("hint", text(HINT)),
        ("lease_id", id("The lease that was taken.")),
        ("reservation_id", id("The reservation that was made.")),
    ];
    object("The decision of a check.", required, optional)
}

fn change() -> Value {
    let limit = vec![
        ("limit", text(LIMIT)),
        ("capacity", count("Its capacity.")),
        ("remaining", count(REMAINING)),
        ("reset_after", seconds(RESET_AFTER)),
    ];
    let limits = list(object("What a limit has left.", limit, vec![]));
    let granted = "The cost that was charged or given back; of a settlement, what is charged now.";
    let required = vec![
        ("changed", boolean("Whether anything changed.")),
        ("granted", count(granted)),
        ("policy", text("The policy's name.")),
        ("capacity", count("The capacity of the binding limit.")),
        ("remaining", count("The greatest cost that the limits would admit now.")),
        ("reset_after", seconds_or_null(RESET_AFTER)),
        ("replayed", boolean(REPLAYED)),
        ("time", seconds(TIME)),
        ("limits", described(limits, "In the policy's order.")),
    ];
    let optional = vec![
        ("block", described(block(), "The key's block, after block, unblock and reset.")),
        ("hint", text(HINT)),
        ("lease_id", id("The lease that was renewed or released.")),
        ("reservation_id", id("The reservation that was cancelled.")),
    ];
    object("The result of an operation that decides nothing.", required, optional)
}

fn block() -> Value {
    let ends_after = seconds_or_null("The time until it ends; null if it never does.");
    let block = object("A block.", vec![("ends_after", ends_after)], vec![]);
    json!({ "oneOf": [{ "type": "null" }, block] })
}

fn limit() -> Value {
    let required = vec![
        ("limit", text(LIMIT)),
        ("allowed", boolean("Whether this limit alone admits.")),
        ("binding", boolean("Whether it is the policy's binding limit.")),
        ("capacity", count("Its capacity.")),
        ("remaining", count(REMAINING)),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
        ("reset_after", seconds(RESET_AFTER)),
    ];
    let shadow = described(
        json!({ "const": true }),
        "Shadow mode: the policy reports what it would do and denies nothing.",
    );
    object("The decision of a limit.", required, vec![("shadow", shadow)])
}

fn decisions() -> Value {
    let required = vec![
        ("allowed", boolean(ALLOWED)),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
        ("never", boolean("Whether a cost exceeds a capacity, so that waiting does not help.")),
        ("decisions", described(list(schema_ref("Decision")), "Of each check, in order.")),
    ];
    object("The decisions of checks that were executed together.", required, vec![])
}

fn changes_of_checks() -> Value {
    let required = vec![
        ("changed", boolean("Whether anything changed.")),
        ("decisions", described(list(schema_ref("Change")), "The result of each check, in order.")),
    ];
    object("The results of checks that were executed together.", required, vec![])
}

fn inspection() -> Value {
    let cost = || count("Its cost.");
    let lease = vec![("cost", cost()), ("ends_after", seconds("The time until it ends."))];
    let leases =
        list(object("A lease.", lease, vec![("lease_id", id("Its id; for operators only."))]));
    let limit = vec![
        ("limit", text(LIMIT)),
        ("capacity", count("Its capacity.")),
        ("used", count("The used part of the capacity.")),
        ("remaining", count(REMAINING)),
        ("reset_after", seconds(RESET_AFTER)),
        ("leases", described(leases, "The active leases.")),
    ];
    let limits = list(object("The state of a limit.", limit, vec![]));
    let reservation = vec![("cost", cost()), ("acts_after", seconds("The time until it acts."))];
    let reservation_id = vec![("reservation_id", id("Its id; for operators only."))];
    let reservations = list(object("A reservation.", reservation, reservation_id));
    let required = vec![
        ("policy", text("The policy's name.")),
        ("block", block()),
        ("ban", ban()),
        ("limits", described(limits, "In the policy's order.")),
        ("reservations", described(reservations, "The reservations that have not acted yet.")),
        ("time", seconds(TIME)),
    ];
    let held = vec![
        ("remaining", count("The cost that it can admit.")),
        ("ends_after", seconds("The time until the last of it is not spent any more.")),
    ];
    let held = object("Quota that this daemon has charged in advance.", held, vec![]);
    let about = "What this daemon holds of the quota of a leased policy.";
    let mut optional = vec![("hint", text(HINT)), ("held", described(held, about))];
    optional.extend(usage::record());
    object("The state of a key.", required, optional)
}

fn ban() -> Value {
    let required = vec![
        ("max_denials", count("The number of denials within a window that bans the key.")),
        ("denials", count("The denials in the open window; 0 while the key is banned.")),
        ("window_ends_after", seconds_or_null("The time until the open window ends.")),
        ("banned_for", seconds_or_null("The time until the ban ends; null if there is none.")),
    ];
    let ban = object("The denials that are counted, or the ban.", required, vec![]);
    let about = "The ban of a policy that bans keys; otherwise null.";
    described(json!({ "oneOf": [{ "type": "null" }, ban] }), about)
}

fn problem() -> Value {
    let types: Vec<_> = ProblemKind::ALL.iter().map(|kind| kind.uri()).collect();
    let required = vec![
        ("type", json!({ "type": "string", "enum": types })),
        ("title", text("The same for all problems of the type.")),
        ("status", json!({ "type": "integer", "minimum": 400, "maximum": 599 })),
        ("detail", text("The error, and how to fix it.")),
    ];
    let optional = vec![
        ("field", text("The field at fault.")),
        ("value", json!({ "description": "Its value; the beginning of a long one as a string." })),
    ];
    object("An error (RFC 9457).", required, optional)
}

fn denial() -> Value {
    let types = DenialKind::ALL.map(DenialKind::uri);
    let required = vec![
        ("type", json!({ "type": "string", "enum": types })),
        ("title", text("The same for all denials of the type.")),
        ("status", json!({ "type": "integer", "enum": [401, 403, 429] })),
        ("detail", text("The reason, and whether to try again.")),
        (
            "violated-policies",
            described(
                list(json!({ "type": "string" })),
                "The denying policies, by their names in RateLimit-Policy; of a policy with \
                several limits the limit, such as api.2. Empty if the rules deny.",
            ),
        ),
        ("retry_after", seconds_or_null(RETRY_AFTER)),
    ];
    object(
        "A denial as the client of a gateway may see it (RFC 9457), below 1 KiB.",
        required,
        vec![],
    )
}
