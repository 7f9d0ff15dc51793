//! Lines of the common and the combined format, valid and invalid.

use tollgate_replay::log::{Fields, Format};

use crate::describe::{describe, reader};

const HEADERS: &[&str] = &["header.referer", "header.user-agent"];

const ROWS: &[(&str, &str)] = &[
    (
        r#"192.0.2.1 - ada [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#,
        "time=971211336s ip=192.0.2.1 user=ada method=GET target=/a.gif status=200",
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c%20d HTTP/1.1" 304 - "https://example.com/x" "Mozilla/5.0 (X11)""#,
        "time=971211336s ip=192.0.2.1 method=GET target=/a?b=c%20d status=304 \
         header.referer=https://example.com/x header.user-agent=Mozilla/5.0 (X11)",
    ),
    // Custom fields may follow the user agent.
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/2.0" 200 5 "-" "curl/8.5" "198.51.100.7" rt=0.003 "unclosed"#,
        "time=971211336s ip=192.0.2.1 method=GET target=/ status=200 header.user-agent=curl/8.5",
    ),
    (
        r#"2001:db8::7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "-""#,
        "time=971211336s ip=2001:db8::7 method=GET target=/ status=200",
    ),
    (
        r#"client.example.org - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "" """#,
        "time=971211336s ip=client.example.org method=GET target=/ status=200",
    ),
    // A virtual host before the address.
    (
        r#"www.example.com:443 192.0.2.1 - ada [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "-""#,
        "time=971211336s ip=192.0.2.1 user=ada method=GET target=/ host=www.example.com status=200",
    ),
    (
        r#"[2001:db8::1]:80 2001:db8::7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#,
        "time=971211336s ip=2001:db8::7 method=GET target=/ host=[2001:db8::1] status=200",
    ),
    // A list of addresses from the header of a load balancer.
    (
        r#"198.51.100.7, 10.0.0.1, 10.0.0.2 - ada [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#,
        "time=971211336s ip=198.51.100.7 user=ada method=GET target=/ status=200",
    ),
    (
        r#"192.0.2.1 - Ada Lovelace [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#,
        "time=971211336s ip=192.0.2.1 user=Ada Lovelace method=GET target=/ status=200",
    ),
    (
        r#"192.0.2.1 - a[1] [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#,
        "time=971211336s ip=192.0.2.1 user=a[1] method=GET target=/ status=200",
    ),
    // A user name cannot forge the time.
    (
        r#"192.0.2.1 - x [10/Oct/2001:13:55:36 -0700] \"GET [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#,
        r#"time=971211336s ip=192.0.2.1 user=x [10/Oct/2001:13:55:36 -0700] "GET method=GET target=/ status=200"#,
    ),
    (
        r#"192.0.2.1 - "" [10/Oct/2000:13:55:36 -0700] "-" 400 0 "-" "-""#,
        "time=971211336s ip=192.0.2.1 status=400",
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "" 400 0 "-" "-""#,
        "time=971211336s ip=192.0.2.1 status=400",
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "\x16\x03\x01 \x02" 400 150 "-" "-""#,
        "time=971211336s ip=192.0.2.1 status=400",
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /" 200 5"#,
        "time=971211336s ip=192.0.2.1 method=GET target=/ status=200",
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a b c HTTP/1.1" 404 5"#,
        "time=971211336s ip=192.0.2.1 method=GET target=/a b c status=404",
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /\"a\x22\\ HTTP/1.1" 404 5 "\"r\"" "say \"hi\"""#,
        r#"time=971211336s ip=192.0.2.1 method=GET target=/"a"\\ status=404 header.referer="r" header.user-agent=say "hi""#,
    ),
    (
        r#"192.0.2.1 - - [10/Oct/2000:13:55:36.250 -0700] "GET / HTTP/1.1" - -"#,
        "time=971211336.25 ip=192.0.2.1 method=GET target=/",
    ),
    (
        r#"192.0.2.1 - - [2000-10-10T13:55:36-07:00] "GET / HTTP/1.1" 200 5"#,
        "time=971211336s ip=192.0.2.1 method=GET target=/ status=200",
    ),
    (
        r#"- - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#,
        "time=971211336s method=GET target=/ status=200",
    ),
    ("", "nothing"),
    (" \t", "nothing"),
    ("once upon a time", "NoTime"),
    (r#"192.0.2.1 - - [soon] "GET / HTTP/1.1" 200 5"#, "Time"),
    (r#"192.0.2.1 - - [10/Oct/1960:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#, "BeforeEpoch"),
    ("192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] GET /", "NoRequest"),
    (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HT"#, "Unclosed"),
    (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1\"#, "Unclosed"),
    (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "Mozi"#, "Unclosed"),
    (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1""#, "NoStatus"),
    (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" OK 5"#, "NoStatus"),
    (r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5x"#, "NoStatus"),
];

#[test]
fn access_logs_are_parsed() {
    let mut reader = reader(Format::Combined, "", &Fields::default());
    for (line, expected) in ROWS {
        assert_eq!(describe(&mut reader, line.as_bytes(), HEADERS), *expected, "{line}");
    }
}

#[test]
fn a_common_log_has_no_headers() {
    let mut reader = reader(Format::Common, "", &Fields::default());
    let line = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "curl"#;
    let expected = "time=971211336s ip=192.0.2.1 method=GET target=/ status=200";
    assert_eq!(describe(&mut reader, line.as_bytes(), HEADERS), expected);
}

#[test]
fn bytes_that_are_not_text_are_kept() {
    let mut reader = reader(Format::Combined, "", &Fields::default());
    let line = b"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /\xFF HTTP/1.1\" 200 5\r";
    assert_eq!(reader.read(line).unwrap().unwrap().target, Some(&b"/\xFF"[..]));
}
