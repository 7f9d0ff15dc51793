//! Arbitrary bytes are a line or an error.

use proptest::prelude::*;
use tollgate_replay::log::{Fields, Format, Reader, printable};

const LINES: [&str; 5] = [
    r#"h:1 10.0.0.1, ::1 - a [10/Oct/2000:13:55:36.5 -0700] "GET /\x22\" HTTP/1.1" 200 5 "\\" "c""#,
    r#"10.0.0.1 - a [2000-10-10T13:55:36-07:00] "GET / HTTP/1.1" 200 5 "-" "c""#,
    r#"{"time":"2000-10-10T13:55:36Z","request":{"headers":{"A":["\u00e9"]}},"key":"\"","cost":1}"#,
    r#"1763650000.5,"a ""b"" c",1"#,
    "time,key,cost",
];

/// A line of some format with bytes replaced, inserted or removed.
fn damaged_line() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..4_u8);
    (prop::sample::select(&LINES[..]), prop::collection::vec(change, 0..4)).prop_map(
        |(line, changes)| {
            let mut line = line.as_bytes().to_vec();
            for (at, byte, kind) in changes {
                let at = at.index(line.len() + 1);
                match kind {
                    0 => line.insert(at, byte),
                    1 => line.truncate(at),
                    2 => line.insert(at, b"\"\\[] ,{}:"[usize::from(byte) % 9]),
                    _ if at < line.len() => line[at] = byte,
                    _ => {}
                }
            }
            line
        },
    )
}

fn check(line: &[u8]) {
    assert!(printable(line).chars().count() <= 120);
    let _format = Format::detect(line);
    let mut fields = Fields::default();
    fields.want("header.a").unwrap();
    for format in [Format::Common, Format::Combined, Format::Json, Format::Csv] {
        let mut reader = Reader::open(Some(format), b"time,key,cost", &fields).unwrap();
        let first = format!("{:?}", reader.read(line));
        // The cache of a line never changes the next one.
        assert_eq!(format!("{:?}", reader.read(line)), first);
        let _opened = Reader::open(Some(format), line, &fields);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_line_or_an_error(line in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&line);
    }

    #[test]
    fn damaged_lines_are_a_line_or_an_error(line in damaged_line()) {
        check(&line);
    }
}
