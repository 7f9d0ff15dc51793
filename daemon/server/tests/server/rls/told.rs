//! What Envoy is told beside the statuses: headers for its client, and dynamic metadata.

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use tollgate_server::CompatHeaders;

use super::client::{Client, call, connect};
use super::lines::request_of;
use super::{config, start};
use crate::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: wide, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: narrow, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: quota, rate_limit: { unit: hour, requests_per_unit: 1 }, quota_mode: true,
      metadata: { name: service_1, of: { quota: true } } }
  - { key: other, rate_limit: { unit: hour, requests_per_unit: 9 }, quota_mode: true,
      metadata: { name: service_2, weight: 0.5, of: { other: [1, null] } } }
  - { key: free, rate_limit: { unlimited: true }, metadata: { name: free } }
";

/// The headers that are told, as `name: value`.
async fn headers(client: &mut Client, request: &str) -> String {
    let answer = call(client, request_of(request)).await.unwrap();
    let headers = answer.response_headers_to_add.iter();
    headers.map(|header| format!("{}: {}", header.key, header.value)).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn the_reference_s_headers_tell_what_is_over_or_else_what_is_nearest_to_it() {
    let mut config = config("charging: reference", LIMITS);
    let [limit, remaining, reset] = ["L", "Left", "Reset"].map(str::to_owned);
    config.envoy.compat.headers = Some(CompatHeaders { limit, remaining, reset });
    let daemon = Daemon::start_of(config).await;
    let mut client = connect(&daemon).await;
    for (request, expected) in [
        ("domain | wide=a", "L: 10, Left: 9, Reset: 20"),
        ("domain | wide=a | narrow=a", "L: 2, Left: 1, Reset: 800"),
        ("domain | narrow=a | wide=a", "L: 2, Left: 0, Reset: 800"),
        ("domain | narrow=a | wide=b", "L: 2, Left: 0, Reset: 800"),
        ("domain | narrow=a | wide=a +20", "L: 10, Left: 0, Reset: 20"),
        // What is of a quota and over is only near.
        ("domain | quota=a", "L: 1, Left: 0, Reset: 800"),
        ("domain | narrow=a | quota=a", "L: 2, Left: 0, Reset: 800"),
        ("domain | free=a", ""),
        ("domain | unknown=a", ""),
        ("unknown | wide=a", ""),
    ] {
        assert_eq!(headers(&mut client, request).await, expected, "{request}");
    }
}

#[tokio::test]
async fn ours_are_in_the_styles_of_the_configuration() {
    let daemon = start("response_headers: true", LIMITS).await;
    let mut client = connect(&daemon).await;
    for (request, expected) in [
        (
            "domain | wide=a | narrow=a",
            "ratelimit-policy: \"@envoy.domain\";q=2;w=3600, ratelimit: \"@envoy.domain\";r=1;t=1800",
        ),
        (
            "domain +2 | wide=a | narrow=a",
            "ratelimit-policy: \"@envoy.domain\";q=2;w=3600, ratelimit: \"@envoy.domain\";r=1;t=800, \
             retry-after: 800",
        ),
        ("domain | free=a", ""),
    ] {
        assert_eq!(headers(&mut client, request).await, expected, "{request}");
    }
    let daemon = start("", LIMITS).await;
    assert_eq!(headers(&mut connect(&daemon).await, "domain | wide=a").await, "");
}

/// An object in short, by name: `{a: "b", c: [1]}`.
fn short(object: &Struct) -> String {
    let mut fields: Vec<_> =
        object.fields.iter().map(|(name, value)| format!("{name}: {}", short_of(value))).collect();
    fields.sort();
    format!("{{{}}}", fields.join(", "))
}

fn short_of(value: &Value) -> String {
    match value.kind.as_ref().unwrap() {
        Kind::NullValue(_) => "null".to_owned(),
        Kind::NumberValue(number_value) => number_value.to_string(),
        Kind::StringValue(string_value) => format!("{string_value:?}"),
        Kind::BoolValue(bool_value) => bool_value.to_string(),
        Kind::StructValue(struct_value) => short(struct_value),
        Kind::ListValue(list_value) => {
            format!("[{}]", list_value.values.iter().map(short_of).collect::<Vec<_>>().join(", "))
        }
    }
}

#[tokio::test]
async fn metadata_tells_the_request_and_what_rules_say_of_what_passed() {
    let daemon = start("dynamic_metadata: true", LIMITS).await;
    let mut client = connect(&daemon).await;
    for (request, expected) in [
        ("domain +2 | wide=a path=/ | other=a +1 5/DAY | unknown=a 7/UNKNOWN", ""),
        (
            "domain +1 | wide=a path=/ | wide=b +3 5/DAY",
            r#"{descriptors: [{entries: ["wide=a", "path=/"]}, {entries: ["wide=b"], hitsAddend: 3, limit: "requests_per_unit:5 unit:DAY"}], domain: "domain", hitsAddend: 1}"#,
        ),
        (
            "domain | quota=a | other=a",
            r#"{descriptors: [{entries: ["quota=a"]}, {entries: ["other=a"]}], domain: "domain", metadata: {name: "service_1", of: {other: [1, null], quota: true}, weight: 0.5}}"#,
        ),
        // Of what is over nothing is told, nor of what nothing limits.
        (
            "domain | quota=a | other=a | free=a",
            r#"{descriptors: [{entries: ["quota=a"]}, {entries: ["other=a"]}, {entries: ["free=a"]}], domain: "domain", metadata: {name: "service_2", of: {other: [1, null]}, weight: 0.5}}"#,
        ),
    ] {
        match call(&mut client, request_of(request)).await {
            Ok(answer) => {
                assert_eq!(short(answer.dynamic_metadata.as_ref().unwrap()), expected, "{request}");
            }
            Err(status) => {
                assert_eq!((status.code(), expected), (tonic::Code::InvalidArgument, ""))
            }
        }
    }
    let daemon = start("", LIMITS).await;
    let answer = call(&mut connect(&daemon).await, request_of("domain | quota=a")).await.unwrap();
    assert_eq!(answer.dynamic_metadata, None);
}
