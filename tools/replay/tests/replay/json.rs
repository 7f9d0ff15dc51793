//! Lines of JSON, from the documentation of servers.

use tollgate_replay::log::{Fields, Format, TimeUnit};

use crate::describe::{check_rows, describe, reader};

const ROWS: &str = include_str!("json.rows");

#[test]
fn json_of_well_known_servers_is_parsed_by_default() {
    let mut fields = Fields::default();
    fields.want("header.User-Agent").unwrap();
    let mut reader = reader(Format::Json, "", &fields);
    check_rows(&mut reader, ROWS, 20, &["header.user-agent"]);
    assert_eq!(describe(&mut reader, b"   ", &[]), "nothing");
}

#[test]
fn fields_can_be_mapped() {
    let mut fields = Fields::default();
    for text in ["time=at", "key=who.id", "verb=what", "max_wait=wait", "header.x-plan=plan"] {
        fields.assign(text).unwrap();
    }
    fields.set_time_unit(TimeUnit::Millis);
    let mut reader = reader(Format::Json, "", &fields);
    let line = br#"{"at":1763650000123,"time":1,"who":{"id":"ada"},"key":"no","what":"reserve","wait":2.5,"plan":"pro"}"#;
    let expected = "time=1763650000.123 key=ada verb=reserve max_wait=2.5 header.x-plan=pro";
    let further = ["verb", "max_wait", "header.x-plan", "request_id"];
    assert_eq!(describe(&mut reader, line, &further), expected);
}

#[test]
fn bytes_that_are_not_text_are_not_json() {
    let mut reader = reader(Format::Json, "", &Fields::default());
    assert_eq!(
        describe(&mut reader, b"{\"time\":1,\"key\":\"\xFF\"}", &[]),
        "NotJson { column: 18 }"
    );
}

#[test]
fn excessive_depth_is_an_error_of_the_line() {
    let mut reader = reader(Format::Json, "", &Fields::default());
    let deep = format!(r#"{{"time":1,"request":{}}}"#, "[".repeat(100_000));
    assert!(describe(&mut reader, deep.as_bytes(), &[]).starts_with("NotJson"));
    let deep = format!(r#"{{"time":1,"request":{}1}}"#, r#"{"headers":"#.repeat(100_000));
    assert!(describe(&mut reader, deep.as_bytes(), &[]).starts_with("NotJson"));
    assert_eq!(describe(&mut reader, br#"{"time":1}"#, &[]), "time=1");
}
