//! The schemas of what policies track about their keys.

use serde_json::{Value, json};
use tollgate_insight::{NoteAnswer, Order};

use super::parts::{described, list, schema_ref, text};
use super::schemas::{count, object, seconds};

const ALLOWED: &str = "The requests that the limits admitted.";
const DENIED: &str = "The requests that the limits denied, also those of a shadow policy.";
const COST: &str = "The cost that was charged.";

fn members() -> Vec<(&'static str, Value)> {
    vec![
        ("first_seen", seconds("The time of the first request.")),
        ("last_seen", seconds("The time of the last request.")),
        ("allowed", count(ALLOWED)),
        ("denied", count(DENIED)),
        ("cost", count(COST)),
    ]
}

/// The totals of a key.
pub(super) fn totals() -> Value {
    object("The totals of a key.", members(), vec![])
}

/// A page of keys.
pub(super) fn keys() -> Value {
    let mut required = vec![("key", text("The key, as privacy permits."))];
    required.extend(members());
    let base64 = text("The bytes of a key that is not UTF-8, as base64.");
    let key = object("A key and its totals.", required, vec![("key_base64", base64)]);
    let cursor = json!({
        "type": ["string", "null"],
        "description": "The cursor of the next page; null after the last one.",
    });
    let required = vec![
        ("policy", text("The policy's name.")),
        ("order", json!({ "type": "string", "enum": Order::ALL.map(Order::as_str) })),
        ("keys", described(list(key), "The keys in order.")),
        ("cursor", cursor),
    ];
    object("A page of keys.", required, vec![])
}

/// What is recorded about a key, as optional members of its inspection.
pub(super) fn record() -> Vec<(&'static str, Value)> {
    let answers = NoteAnswer::ALL.map(NoteAnswer::as_str);
    let required = vec![
        ("time", seconds("The time of the decision.")),
        ("cost", count("The requested cost.")),
        ("answer", json!({ "type": "string", "enum": answers })),
    ];
    let note = object("A decision.", required, vec![("note", text("The note of the request."))]);
    let interval = object(
        "The requests of an interval.",
        vec![
            ("start", seconds("Its beginning, since the Unix epoch.")),
            ("allowed", count(ALLOWED)),
            ("denied", count(DENIED)),
            ("cost", count(COST)),
        ],
        vec![],
    );
    let timeline = object(
        "The requests per interval, if the policy tracks a timeline.",
        vec![
            ("interval", seconds("The length of an interval.")),
            ("intervals", described(list(interval), "Those with requests, by ascending time.")),
        ],
        vec![],
    );
    vec![
        ("usage", schema_ref("Usage")),
        ("recent", described(list(note), "The last decisions, if the policy tracks its keys.")),
        ("timeline", timeline),
    ]
}
