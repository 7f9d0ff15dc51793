//! Response headers and dynamic metadata.

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use tollgate_daemon::CompatHeaders;

use super::client::{Client, connect, parse_request, send};
use super::{config, start};
use crate::support::daemon::Daemon;
use crate::support::parse_rows;

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

/// The response headers, as `name: value`.
async fn headers(client: &mut Client, request: &str) -> String {
    let response = send(client, parse_request(request)).await.unwrap();
    let headers = response.response_headers_to_add.iter();
    headers.map(|header| format!("{}: {}", header.key, header.value)).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn configured_headers_describe_the_limit_closest_to_exhaustion() {
    let mut config = config("charging: reference", LIMITS);
    let [limit, remaining, reset] = ["L", "Left", "Reset"].map(str::to_owned);
    config.envoy.compat.headers = Some(CompatHeaders { limit, remaining, reset });
    let daemon = Daemon::start_with_config(config).await;
    let mut client = connect(&daemon).await;
    for (request, expected) in [
        ("domain | wide=a", "L: 10, Left: 9, Reset: 20"),
        ("domain | wide=a | narrow=a", "L: 2, Left: 1, Reset: 800"),
        ("domain | narrow=a | wide=a", "L: 2, Left: 0, Reset: 800"),
        ("domain | narrow=a | wide=b", "L: 2, Left: 0, Reset: 800"),
        ("domain | narrow=a | wide=a +20", "L: 10, Left: 0, Reset: 20"),
        // A quota that is over does not count as over the limit.
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
async fn response_headers_follow_the_configured_styles() {
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

/// Formats an object with sorted names: `{a: "b", c: [1]}`.
fn format_object(object: &Struct) -> String {
    let mut fields: Vec<_> = object
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", format_value(value)))
        .collect();
    fields.sort();
    format!("{{{}}}", fields.join(", "))
}

fn format_value(value: &Value) -> String {
    match value.kind.as_ref().unwrap() {
        Kind::NullValue(_) => "null".to_owned(),
        Kind::NumberValue(number) => number.to_string(),
        Kind::StringValue(text) => format!("{text:?}"),
        Kind::BoolValue(value) => value.to_string(),
        Kind::StructValue(object) => format_object(object),
        Kind::ListValue(list) => {
            format!("[{}]", list.values.iter().map(format_value).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Requests, and the metadata of their responses or the code of the error.
const METADATA: &str = r#"
> domain +2 | wide=a path=/ | other=a +1 5/DAY | unknown=a 7/UNKNOWN
< InvalidArgument
> domain +1 | wide=a path=/ | wide=b +3 5/DAY
< {descriptors: [{entries: ["wide=a", "path=/"]}, {entries: ["wide=b"], hitsAddend: 3, limit: "requests_per_unit:5 unit:DAY"}], domain: "domain", hitsAddend: 1}
> domain | quota=a | other=a
< {descriptors: [{entries: ["quota=a"]}, {entries: ["other=a"]}], domain: "domain", metadata: {name: "service_1", of: {other: [1, null], quota: true}, weight: 0.5}}
# Rules that are over the limit and unlimited descriptors add no metadata.
> domain | quota=a | other=a | free=a
< {descriptors: [{entries: ["quota=a"]}, {entries: ["other=a"]}, {entries: ["free=a"]}], domain: "domain", metadata: {name: "service_2", of: {other: [1, null]}, weight: 0.5}}
"#;

#[tokio::test]
async fn dynamic_metadata_describes_the_request_and_the_admitting_rules() {
    let daemon = start("dynamic_metadata: true", LIMITS).await;
    let mut client = connect(&daemon).await;
    for (request, expected) in parse_rows(METADATA, 4) {
        let metadata = match send(&mut client, parse_request(request)).await {
            Ok(response) => format_object(response.dynamic_metadata.as_ref().unwrap()),
            Err(status) => format!("{:?}", status.code()),
        };
        assert_eq!(metadata, expected, "{request}");
    }
    let daemon = start("", LIMITS).await;
    let response =
        send(&mut connect(&daemon).await, parse_request("domain | quota=a")).await.unwrap();
    assert_eq!(response.dynamic_metadata, None);
}
