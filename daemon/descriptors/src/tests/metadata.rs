//! The metadata of rules.

use envoy_types::pb::google::protobuf::Struct;
use envoy_types::pb::google::protobuf::value::Kind;

use super::*;

/// A struct as JSON, with sorted fields.
fn json(metadata: &Struct) -> String {
    let mut fields = metadata.fields.iter().collect::<Vec<_>>();
    fields.sort_by_key(|field| field.0);
    let fields =
        fields.iter().map(|(name, field)| format!("{name:?}:{}", value(field.kind.as_ref())));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn value(kind: Option<&Kind>) -> String {
    match kind.unwrap() {
        Kind::NullValue(_) => "null".to_owned(),
        Kind::NumberValue(number) => number.to_string(),
        Kind::StringValue(text) => format!("{text:?}"),
        Kind::BoolValue(flag) => flag.to_string(),
        Kind::StructValue(fields) => json(fields),
        Kind::ListValue(list) => {
            let all = list.values.iter().map(|element| value(element.kind.as_ref()));
            format!("[{}]", all.collect::<Vec<_>>().join(","))
        }
    }
}

#[test]
fn metadata_is_passed_on_unchanged() {
    let rows = [
        ("{name: service_1}", Some(r#"{"name":"service_1"}"#)),
        (
            "{quota: {name: service_2, of: [1, two, ~, {a: yes}]}}",
            Some(r#"{"quota":{"name":"service_2","of":[1,"two",null,{"a":true}]}}"#),
        ),
        (
            "{n: 1.5, m: -2, big: 18446744073709551615, s: '1.5', hex: 0x10}",
            Some(r#"{"big":18446744073709552000,"hex":16,"m":-2,"n":1.5,"s":"1.5"}"#),
        ),
        // Names of fields are not validated, and become strings.
        (
            "{unknown: 1, deep: {0.50: a, 1: b, ~: c, no: d}}",
            Some(r#"{"deep":{"0.5":"a","1":"b","<nil>":"c","false":"d"},"unknown":1}"#),
        ),
        ("{}", None),
        ("", None),
    ];
    for (text, expected) in rows {
        let domains = read(&format!(
            "domain: d\ndescriptors:\n- key: k\n  metadata: {text}\n  rate_limit: {{unit: day}}"
        ));
        let Lookup::Rule(rule) = domains.find("d", &[("k", "v")]) else { panic!("{text}") };
        let metadata = rule.rule.metadata.as_ref().map(|metadata| json(metadata));
        assert_eq!(metadata.as_deref(), expected, "{text}");
    }
}

#[test]
fn metadata_belongs_to_its_rule_regardless_of_metrics() {
    let flags = ["", "detailed_metric: true,", "value_to_metric: true,"];
    for flags in flags {
        let domains = read(&format!(
            "domain: d
descriptors:
  - key: o
    metadata: {{name: outer}}
    descriptors:
      - {{key: k, {flags} metadata: {{name: inner}}, rate_limit: {{unit: day}}}}
      - {{key: k, value: v, rate_limit: {{unit: day}}}}"
        ));
        let metadata = |request| match domains.find("d", &entries(request)) {
            Lookup::Rule(rule) => rule.rule.metadata.as_ref().map(|metadata| json(metadata)),
            other => panic!("{other:?}"),
        };
        assert_eq!(metadata("o=1 k=2").as_deref(), Some(r#"{"name":"inner"}"#));
        assert_eq!(metadata("o=1 k=v"), None);
    }
}
