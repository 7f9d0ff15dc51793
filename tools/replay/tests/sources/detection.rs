//! Detection of the format.

use tollgate_replay::log::{Fields, Format, Reader};

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
    let error = "clf".parse::<Format>().unwrap_err().to_string();
    assert_eq!(error, r#"unknown format "clf"; expected common, combined, json or csv"#);
    for format in [Format::Common, Format::Combined, Format::Json, Format::Csv] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
}
