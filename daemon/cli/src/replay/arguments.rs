//! The arguments of `tollgate replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use tollgate::masked_url;

use crate::arguments::Form;

const EXAMPLES: &str = "\
Examples:
  tollgate replay access.log --limit \"10/s burst 20\" --limit \"300/min sliding\"
  tollgate replay access.log.1.gz access.log --limit 10/s --suggest 0.1% --report report.html
  kubectl logs deploy/web | tollgate replay - --limit 10/s --key \"{header.x-api-key|ip}\"
  tollgate replay access.log --config tollgate.yaml --rules
  tollgate replay --generate \"stampede rate 5/s keys 1\" --limit \"100/min fixed\" --svg edge.svg";

/// Replay an access log through limits, and report who would have been denied
///
/// Every line is decided at its own time. Several --limit are compared, each independently of the
/// others.
///
/// Exit codes: 0 finished, 2 error or no line decided, 130 interrupted (the report covers the first
/// part).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// Log files, oldest first, plain, .gz or .zst; - is standard input
    #[arg(value_name = "LOG", required_unless_present = "generate", conflicts_with = "generate")]
    pub(crate) logs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) report: ReportArguments,

    /// Try synthetic traffic instead of a log: steady, poisson, bursts, zipf, diurnal or stampede,
    /// followed by parameters, such as "zipf rate 1000/s for 1h keys 100000 window 1min seed 7"
    #[arg(long, value_name = "TRAFFIC", help_heading = "Synthetic traffic")]
    pub(crate) generate: Option<String>,
    /// Write the synthetic traffic to this file as an access log, and exit
    #[arg(long, value_name = "FILE", requires = "generate", help_heading = "Synthetic traffic")]
    #[arg(conflicts_with_all = ["limits", "policies"])]
    pub(crate) write_log: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Limits to try, such as "10/s burst 20" or "10/s; 1000/h sliding"; can be repeated
    #[arg(long = "limit", value_name = "LIMITS")]
    pub(crate) limits: Vec<String>,
    /// Configuration file for --policy and --rules
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Try a policy of the configuration, with its overrides; can be repeated
    #[arg(long = "policy", value_name = "NAME", requires = "config")]
    pub(crate) policies: Vec<String>,
    /// Try the rules of the configuration, which select the policies and the key of each line
    #[arg(long, requires = "config")]
    #[arg(conflicts_with_all = ["key", "policies", "limits", "generate", "suggest", "verbs"])]
    pub(crate) rules: bool,
    /// Template of the key, as in the rules of a configuration [default: the field key of the log
    /// if there is one, otherwise {ip}]
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "generate")]
    pub(crate) key: Option<String>,
    /// Find the lowest limits that would deny at most this share of the keys, such as 0.1%
    #[arg(long, value_name = "SHARE")]
    pub(crate) suggest: Option<String>,
    /// Store to use instead of memory, such as redis://127.0.0.1:6379; runs at the log's time, in a
    /// namespace that is deleted afterwards
    #[arg(long, value_name = "URL", conflicts_with = "generate")]
    pub(crate) store: Option<String>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArguments {
    /// Format of the logs [default: detected from the first lines]
    #[arg(long, value_name = "FORMAT", conflicts_with = "generate")]
    pub(crate) format: Option<LogFormat>,
    /// Map a name to a field of JSON or a column of CSV, such as ip=remote.address
    #[arg(long = "field", value_name = "NAME=FIELD", conflicts_with = "generate")]
    pub(crate) fields: Vec<String>,
    /// Unit of numeric times
    #[arg(long, value_name = "UNIT", default_value = "s", conflicts_with = "generate")]
    pub(crate) time_unit: Unit,
    /// Treatment of times with a resolution of one second, as in access logs
    #[arg(long, value_name = "HOW", default_value = "spread", conflicts_with = "generate")]
    pub(crate) stamps: Stamps,
    /// How late a line may be and still be sorted into its place
    #[arg(long, value_name = "DURATION", default_value = "60s", conflicts_with = "generate")]
    pub(crate) reorder: String,
    /// Fail on the first invalid line
    #[arg(long, conflicts_with = "generate")]
    pub(crate) strict: bool,
    /// Lines contain operations, such as refund or release [default: on for CSV with
    /// a column `verb`]
    #[arg(long, conflicts_with = "generate")]
    pub(crate) verbs: bool,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub(crate) threads: Option<u16>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Report")]
pub(crate) struct ReportArguments {
    /// Number of most denied keys to list
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) worst: usize,
    /// Format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
    /// Write every decision to this file, one JSON object per line, in the order of the log
    #[arg(long, value_name = "FILE", conflicts_with = "generate")]
    pub(crate) decisions: Option<PathBuf>,
    /// Write the report with pictures to this file, as HTML
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a picture to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Picture to write [default: burst for a single key, otherwise time]
    #[arg(long, value_name = "PICTURE", requires = "svg")]
    pub(crate) picture: Option<Picture>,
}

impl Replay {
    /// The command line, without passwords.
    pub(crate) fn command() -> String {
        let quote = |argument: OsString| {
            let text = without_password(&argument.to_string_lossy());
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%@+".contains(c);
            if !text.is_empty() && text.chars().all(is_plain) {
                return text;
            }
            format!("'{}'", text.replace('\'', r"'\''"))
        };
        let words = std::env::args_os().skip(1).map(quote);
        ["tollgate".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// An argument, in which the password of a store URL is masked.
fn without_password(argument: &str) -> String {
    match argument.strip_prefix("--store=") {
        Some(url) => format!("--store={}", masked_url(url)),
        None if argument.contains("://") => masked_url(argument),
        None => argument.to_owned(),
    }
}

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// The common log format
    Common,
    /// The combined log format, with referer and user agent
    Combined,
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header
    Csv,
}

/// The unit of numeric times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Seconds, with any number of decimals
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

/// The treatment of times with a resolution of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stamps {
    /// Spread evenly over their second, in the order of the lines
    Spread,
    /// Unchanged
    Exact,
}

/// The picture to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// Admitted and offered cost over time
    Time,
    /// How each limit treats single requests; for short logs
    Burst,
    /// The peaks of single keys
    Peaks,
}

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
            "--suggest {text:?}: expected the share of keys that may be denied, such as 0.1% or 0, \
             below 100% and with at most {digits} decimals"
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
