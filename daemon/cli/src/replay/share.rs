//! Parses shares of keys.

use anyhow::{Result, bail};

/// Parses a share such as `0.1%` or `0.001` into millionths.
pub(super) fn parts_per_million(text: &str) -> Result<u32> {
    let (number, digits) = match text.strip_suffix('%') {
        // A percentage has two decimals fewer.
        Some(number) => (number.trim_end(), 4),
        None => (text, 6),
    };
    match millionths(number, digits) {
        Some(millionth) if millionth < 1_000_000 => Ok(millionth),
        _ => bail!(
            "--suggest {text:?}: expected the share of keys that may be denied, such as 0.1% or 0, below \
             100% and with at most {digits} decimals"
        ),
    }
}

fn millionths(number: &str, digits: usize) -> Option<u32> {
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || rest.len() > digits || !is_number(whole) || !is_number(rest) {
        return None;
    }
    format!("{whole}{rest:0<digits$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parts_per_million;

    #[test]
    fn shares_are_parsed() {
        let rows: &[(&str, Option<u32>)] = &[
            ("0.1%", Some(1_000)),
            ("0.0001%", Some(1)),
            ("0.001", Some(1_000)),
            ("0", Some(0)),
            ("0%", Some(0)),
            ("12 %", Some(120_000)),
            ("99.9999%", Some(999_999)),
            ("100%", None),
            ("1", None),
            ("0.00001%", None),
            ("", None),
            ("%", None),
            (".5", None),
            ("-1%", None),
            ("1e3", None),
            ("99999999999999999999%", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parts_per_million(text).ok(), *expected, "{text}");
        }
    }
}
