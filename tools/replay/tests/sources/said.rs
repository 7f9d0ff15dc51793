//! What a line says, as one text that a row can hold.

use std::fmt::Write;

use tollgate_replay::log::{Fields, Format, Reader, shown};

/// The reader of a log that begins so.
pub(crate) fn reader(format: Format, beginning: &str, fields: &Fields) -> Reader {
    Reader::open(Some(format), beginning.as_bytes(), fields).unwrap()
}

/// What the line says, as `time=… ip=…` and so on for what is there; or the name of what is wrong.
pub(crate) fn said(reader: &mut Reader, line: &[u8], further: &[&str]) -> String {
    let line = match reader.read(line) {
        Ok(Some(line)) => line,
        Ok(None) => return "nothing".to_owned(),
        Err(broken) => return format!("{broken:?}"),
    };
    let mut said = format!("time={}", line.time.at);
    if line.time.whole_second {
        said.push('s');
    }
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(said, " {name}={value}").unwrap();
        }
    };
    put("ip", line.address.map(shown));
    put("user", line.user.map(shown));
    put("method", line.method.map(shown));
    put("target", line.target.map(shown));
    put("host", line.host.map(shown));
    put("status", line.status.map(|status| status.to_string()));
    put("key", line.key.map(shown));
    put("cost", line.cost.map(|cost| cost.to_string()));
    put("note", line.note.map(shown));
    for name in further {
        let value = match name.strip_prefix("header.") {
            Some(header) => line.header(header),
            None => line.field(name),
        };
        put(name, value.map(shown));
    }
    said
}
