//! Which form of the page is wanted.

use super::page::Form;

/// The form that `Accept` asks for: OpenMetrics if that is named and is liked no less than the
/// classic one, which is the default.
pub(super) fn form(accept: &str) -> Form {
    let (mut openmetrics, mut classic) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut version) = (1_000, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => quality = thousandths(value.trim()),
                "version" => version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        match (&*kind, version) {
            ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
                openmetrics = quality.max(openmetrics);
            }
            ("text/plain", None | Some("0.0.4")) | ("text/*", _) => classic = quality.max(classic),
            _ => {}
        }
    }
    if openmetrics > 0 && openmetrics >= classic { Form::OpenMetrics } else { Form::Classic }
}

/// A quality, in thousandths; 0 if it is none.
fn thousandths(quality: &str) -> u16 {
    let (whole, part) = quality.split_once('.').unwrap_or((quality, ""));
    let is_part = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "1" if is_part && part.bytes().all(|byte| byte == b'0') => 1_000,
        "0" if is_part => format!("{part:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_those_who_ask_for_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
            application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
            text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, is_openmetrics) in [
            ("", false),
            ("*/*", false),
            ("text/html, */*;q=0.8", false),
            ("text/plain", false),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", true),
            ("application/openmetrics-text; version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=0.000, */*", false),
            ("application/openmetrics-text;q=0.4, text/plain;q=0.5", false),
            ("application/openmetrics-text;q=0.5, text/plain;q=0.5", true),
            ("application/openmetrics-text;q=1.000, text/*", true),
            ("application/openmetrics-text;q=0.25, text/*;q=0.251", false),
            ("application/openmetrics-text;q=banana", false),
            ("application/vnd.google.protobuf;proto=x;q=0.7,text/plain;version=0.0.4", false),
            (prometheus, true),
        ] {
            let expected = if is_openmetrics { Form::OpenMetrics } else { Form::Classic };
            assert_eq!(form(accept), expected, "{accept}");
        }
    }
}
