//! Lines of JSON, from the documentation of servers.

use tollgate_replay::log::{Fields, Format, TimeUnit};

use crate::describe::{describe, reader};

const NGINX: &str = r#"{"time_local":"10/Oct/2000:13:55:36 -0700","remote_addr":"192.0.2.1","remote_user":"-","request":"GET /a?b=1 HTTP/1.1","status":"200","body_bytes_sent":"5","http_user_agent":"say \"hi\"","http_host":"example.com"}"#;
const CADDY: &str = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"198.51.100.7","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/x","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false}},"user_id":"","duration":0.000929675,"size":10900,"status":200}"#;
const TRAEFIK: &str = r#"{"ClientHost":"192.0.2.1","ClientUsername":"-","DownstreamStatus":404,"RequestHost":"example.com","RequestMethod":"GET","RequestPath":"/x","StartUTC":"2022-03-09T21:30:01.524102456Z","request_User-Agent":"curl","level":"info"}"#;
const ENVOY: &str = r#"{"start_time":"2022-03-09T21:30:01.524Z","method":"POST","x_envoy_origin_path":"/v1?x=1","authority":"api","response_code":429,"downstream_remote_address":"192.0.2.1:50122","user_agent":"grpc","duration":3}"#;
const ECS: &str = r#"{"@timestamp":"2022-03-09T21:30:01Z","source":{"ip":"2001:db8::7"},"http.request.method":"GET","url":{"original":"/x"},"http":{"response":{"status_code":200}},"user":{"name":"ada"}}"#;

const ROWS: &[(&str, &str)] = &[
    (
        NGINX,
        r#"time=971211336 ip=192.0.2.1 method=GET target=/a?b=1 host=example.com status=200 header.user-agent=say "hi""#,
    ),
    (
        CADDY,
        "time=1646861401.524102 ip=198.51.100.7 method=GET target=/x host=localhost status=200 \
         header.user-agent=curl/7.82.0",
    ),
    (
        TRAEFIK,
        "time=1646861401.524102 ip=192.0.2.1 method=GET target=/x host=example.com status=404 \
         header.user-agent=curl",
    ),
    (
        ENVOY,
        "time=1646861401.524 ip=192.0.2.1 method=POST target=/v1?x=1 host=api status=429 \
         header.user-agent=grpc",
    ),
    (ECS, "time=1646861401 ip=2001:db8::7 user=ada method=GET target=/x status=200"),
    (
        r#"{"time": 1763650000.123456, "key": "a\u0000b\"", "cost": 3, "note": "-", "verb": "GET"}"#,
        r#"time=1763650000.123456 method=GET key=a\x00b" cost=3 note=-"#,
    ),
    (r#"{"time":1,"ip":"-","remote_addr":"::1","key":"-"}"#, "time=1 ip=::1 key=-"),
    (
        r#"{"time":1763650000,"key":7,"cost":null,"user":12,"client":null,"request":["GET / HTTP/1.1"],"url":1.5}"#,
        "time=1763650000 user=12 method=GET target=/ key=7",
    ),
    (
        r#"{"time":1763650000,"ip":"[2001:db8::7]:99","status":"ok"}"#,
        "time=1763650000 ip=2001:db8::7",
    ),
    (r#"{"ts":1,"time":2,"timestamp":3}"#, "time=2"),
    (r#"{"time":{"deep":[[]]},"ts":"1","ip":[],"host":[null],"key":[["a"]]}"#, "time=1"),
    (r#"{"key":"a"}"#, "NoTime"),
    (r#"{"time":"later","key":"a"}"#, "Time"),
    (r#"{"time":1763650000123,"key":"a"}"#, "FarFuture"),
    (r#"{"time":1,"cost":1.5}"#, r#"Number { field: "cost" }"#),
    (r#"{"time":1,"cost":-1}"#, r#"Number { field: "cost" }"#),
    (r#"{"time":1,"#, "NotJson { column: 10 }"),
    (r#"[{"time":1}]"#, "NotJson { column: 1 }"),
    (r#"{"time":1} {"time":2}"#, "NotJson { column: 12 }"),
    ("plain", "NotJson { column: 1 }"),
    ("   ", "nothing"),
];

#[test]
fn json_of_well_known_servers_is_parsed_by_default() {
    let mut fields = Fields::default();
    fields.want("header.User-Agent").unwrap();
    let mut reader = reader(Format::Json, "", &fields);
    for (line, expected) in ROWS {
        assert_eq!(
            describe(&mut reader, line.as_bytes(), &["header.user-agent"]),
            *expected,
            "{line}"
        );
    }
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
