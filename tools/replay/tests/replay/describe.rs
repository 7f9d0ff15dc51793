//! A line as text, for comparison in tables.

use std::fmt::Write;

use tollgate_replay::log::{Fields, Format, Reader, printable};

/// The reader of a log with this beginning.
pub(crate) fn reader(format: Format, beginning: &str, fields: &Fields) -> Reader {
    Reader::open(Some(format), beginning.as_bytes(), fields).unwrap()
}

/// The values of a line as `time=… ip=…`, or the name of the error.
pub(crate) fn describe(reader: &mut Reader, line: &[u8], extra: &[&str]) -> String {
    let line = match reader.read(line) {
        Ok(Some(line)) => line,
        Ok(None) => return "nothing".to_owned(),
        Err(error) => return format!("{error:?}"),
    };
    let mut text = format!("time={}", line.time.at);
    if line.time.whole_second {
        text.push('s');
    }
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(text, " {name}={value}").unwrap();
        }
    };
    put("ip", line.address.map(printable));
    put("user", line.user.map(printable));
    put("method", line.method.map(printable));
    put("target", line.target.map(printable));
    put("host", line.host.map(printable));
    put("status", line.status.map(|status| status.to_string()));
    put("key", line.key.map(printable));
    put("cost", line.cost.map(|cost| cost.to_string()));
    put("note", line.note.map(printable));
    for name in extra {
        let value = match name.strip_prefix("header.") {
            Some(header) => line.header(header),
            None => line.field(name),
        };
        put(name, value.map(printable));
    }
    text
}

/// Checks `count` rows of two lines: a line of a log, and indented below it its description.
pub(crate) fn check_rows(reader: &mut Reader, rows: &str, count: usize, extra: &[&str]) {
    let mut rows = rows.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(rows.clone().count(), 2 * count, "lines of {count} rows");
    while let Some(line) = rows.next() {
        let expected = rows.next().and_then(|row| row.strip_prefix("  ")).unwrap();
        assert_eq!(describe(reader, line.as_bytes(), extra), expected, "{line}");
    }
}
