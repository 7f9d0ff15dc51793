//! Lines of CSV.

use proptest::prelude::*;
use tollgate_replay::log::{Fields, Format, Reader};

use crate::describe::{check_rows, describe, reader};

const HEADER: &str = "time,key,cost,verb,note,max_wait,ip,header.x-plan";
const EXTRA: &[&str] = &["verb", "max_wait", "header.X-Plan"];

const ROWS: &str = include_str!("csv.rows");

#[test]
fn the_header_names_the_columns() {
    let mut reader = reader(Format::Csv, HEADER, &Fields::default());
    check_rows(&mut reader, ROWS, 13, EXTRA);
}

#[test]
fn a_header_may_be_written_in_many_ways() {
    for header in ["\u{FEFF}time,key", "Time , KEY\r", "\"key\",\"time\"\r\n1,2", "x,key,y,time\n"]
    {
        assert_eq!(Format::detect(header.as_bytes()), Some(Format::Csv), "{header:?}");
        let mut reader = reader(Format::Csv, header, &Fields::default());
        let first = header.trim_end_matches('\n').split('\n').next().unwrap();
        assert_eq!(describe(&mut reader, first.as_bytes(), &[]), "nothing", "{header:?}");
    }
}

#[test]
fn columns_can_be_mapped() {
    let mut fields = Fields::default();
    fields.assign("time=when").unwrap();
    fields.assign("key=Who").unwrap();
    fields.assign("max_wait=patience").unwrap();
    let mut reader = reader(Format::Csv, "when,who,patience", &fields);
    assert_eq!(describe(&mut reader, b"1,ada,9", &["max_wait"]), "time=1 key=ada max_wait=9");
}

#[test]
fn an_insufficient_header_is_rejected() {
    let check = |header: &str, expected: &str| {
        let error = Reader::open(Some(Format::Csv), header.as_bytes(), &Fields::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{header}: {error}");
    };
    check("", "no column time");
    check("\u{0},b", "no column time");
    check("when,key", "--field time=COLUMN");
    check("time,cost", "no column key");
    check("time,\"key", "not a CSV header");
}

proptest! {
    #[test]
    fn quoted_values_equal_unquoted_ones(values in prop::collection::vec("[ -!#-+\\--~]{0,9}", 7)) {
        let mut reader = reader(Format::Csv, HEADER, &Fields::default());
        let plain = format!("1,{}", values.join(","));
        let quoted = format!("1,\"{}\"", values.join("\",\""));
        let expected = describe(&mut reader, plain.as_bytes(), EXTRA);
        prop_assert_eq!(describe(&mut reader, quoted.as_bytes(), EXTRA), expected);
    }
}
