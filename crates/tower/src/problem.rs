//! Bodies of rejections as in RFC 9457.

use std::fmt::Write;

use crate::rejection::Rejection;

/// The most bytes of names in a body, so that it stays below 2 KiB.
const MAX_NAME_BYTES: usize = 512;

/// The problem of a rejection. The type and `violated-policies` of an exceeded limit are those of
/// draft-ietf-httpapi-ratelimit-headers-11.
pub(crate) fn json(rejection: &Rejection) -> String {
    let status = rejection.status();
    let (kind, title) = match rejection {
        Rejection::Denied(denial) if denial.is_by_limit() => (
            "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "The quota is exceeded",
        ),
        _ => ("about:blank", status.canonical_reason().unwrap_or_default()),
    };
    let mut json = String::with_capacity(256);
    json.push_str("{\"type\":");
    string(&mut json, kind);
    json.push_str(",\"title\":");
    string(&mut json, title);
    // Writing to a string cannot fail.
    let _ = write!(json, ",\"status\":{}", status.as_u16());
    json.push_str(",\"detail\":");
    string(&mut json, &rejection.detail());
    if let Rejection::Denied(denial) = rejection {
        json.push_str(",\"violated-policies\":[");
        let mut bytes = 0;
        for (index, name) in tollgate_headers::violated(denial.decisions()).enumerate() {
            bytes += name.len();
            if bytes > MAX_NAME_BYTES {
                break;
            }
            if index > 0 {
                json.push(',');
            }
            string(&mut json, &name);
        }
        json.push(']');
        if let Some(retry_after) = denial.retry_after {
            let _ = write!(json, ",\"retry_after\":{retry_after}");
        }
    }
    json.push('}');
    json
}

/// Appends a JSON string.
fn string(json: &mut String, text: &str) {
    json.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => json.extend(['\\', char]),
            '\0'..=' ' if char != ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(char));
            }
            _ => json.push(char),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        for text in ["", "plain", "a\"b\\c", "tab\tline\n\u{0}\u{1f} é 🦀"] {
            let mut json = String::new();
            string(&mut json, text);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}");
        }
    }
}
