//! The detection of formats; lines of the common and the combined format, valid and invalid.

use tollgate_replay::log::{Fields, Format, Reader};

use crate::describe::{check_rows, describe, reader};

const HEADERS: &[&str] = &["header.referer", "header.user-agent"];

const ROWS: &str = include_str!("access.rows");

#[test]
fn access_logs_are_parsed() {
    let mut reader = reader(Format::Combined, "", &Fields::default());
    check_rows(&mut reader, ROWS, 30, HEADERS);
    for empty in ["", " \t"] {
        assert_eq!(describe(&mut reader, empty.as_bytes(), HEADERS), "nothing");
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

const COMMON: &str = r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5"#;
const COMBINED: &str = r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "curl""#;

#[test]
fn the_first_line_of_a_format_determines_it() {
    let check = |beginning: &str, expected: Option<Format>| {
        assert_eq!(Format::detect(beginning.as_bytes()), expected, "{beginning}");
    };
    check(COMMON, Some(Format::Common));
    check(COMBINED, Some(Format::Combined));
    check(&format!("\r\n\nlog rotated\n{COMBINED}\n{COMMON}"), Some(Format::Combined));
    check(r#" {"time":1}"#, Some(Format::Json));
    check("\u{FEFF}{", Some(Format::Json));
    check("cost,key,time", Some(Format::Csv));
    check("time,cost\n1,2", None);
    check("", None);
    check(&"\n".repeat(100), None);
    check(&format!("{}{COMMON}", "not a log\n".repeat(16)), None);
}

#[test]
fn the_error_of_an_unknown_format_lists_the_formats() {
    let error = Reader::open(None, b"once", &Fields::default()).unwrap_err().to_string();
    assert!(error.contains("--format common|combined|json|csv"), "{error}");
}
