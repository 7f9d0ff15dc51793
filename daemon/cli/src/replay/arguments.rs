//! The arguments of `tollgate replay`.

use std::ffi::OsString;
use std::path::PathBuf;

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
/// Every line is decided at its own time. Several --limit are compared, each independently of the others.
///
/// Exit codes: 0 finished, 2 error or no line decided, 130 interrupted (the report covers the first
/// part).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// Log files, oldest first, plain, .gz or .zst; - is standard input
    #[arg(value_name = "LOG", required_unless_present = "generate", conflicts_with = "generate")]
    pub(crate) logs: Vec<PathBuf>,
    /// Limits to try, such as "10/s burst 20" or "10/s; 1000/h sliding"; can be repeated
    #[arg(long = "limit", value_name = "LIMITS", help_heading = "Limits")]
    pub(crate) limits: Vec<String>,
    /// Configuration file for --policy and --rules
    #[arg(long, value_name = "FILE", help_heading = "Limits")]
    pub(crate) config: Option<PathBuf>,
    /// Try a policy of the configuration, with its overrides; can be repeated
    #[arg(long = "policy", value_name = "NAME", requires = "config", help_heading = "Limits")]
    pub(crate) policies: Vec<String>,
    /// Try the rules of the configuration, which select the policies and the key of each line
    #[arg(long, requires = "config", conflicts_with_all = ["key", "policies", "limits", "generate", "suggest", "verbs"], help_heading = "Limits")]
    pub(crate) rules: bool,
    /// Template of the key, as in the rules of a configuration [default: the field key of the log if
    /// there is one, otherwise {ip}]
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "generate", help_heading = "Limits")]
    pub(crate) key: Option<String>,

    /// Format of the logs [default: detected from the first lines]
    #[arg(long, value_name = "FORMAT", conflicts_with = "generate", help_heading = "Log")]
    pub(crate) format: Option<LogFormat>,
    /// Map a name to a field of JSON or a column of CSV, such as ip=remote.address
    #[arg(
        long = "field",
        value_name = "NAME=FIELD",
        conflicts_with = "generate",
        help_heading = "Log"
    )]
    pub(crate) fields: Vec<String>,
    /// Unit of numeric times
    #[arg(
        long,
        value_name = "UNIT",
        default_value = "s",
        conflicts_with = "generate",
        help_heading = "Log"
    )]
    pub(crate) time_unit: Unit,
    /// Treatment of times with a resolution of one second, as in access logs
    #[arg(
        long,
        value_name = "HOW",
        default_value = "spread",
        conflicts_with = "generate",
        help_heading = "Log"
    )]
    pub(crate) stamps: Stamps,
    /// How late a line may be to be put in order
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        conflicts_with = "generate",
        help_heading = "Log"
    )]
    pub(crate) reorder: String,
    /// Fail on the first invalid line
    #[arg(long, conflicts_with = "generate", help_heading = "Log")]
    pub(crate) strict: bool,
    /// Lines contain operations, such as refund or release [default: if CSV has a column `verb`]
    #[arg(long, conflicts_with = "generate", help_heading = "Log")]
    pub(crate) verbs: bool,

    /// Find the lowest limits that would deny at most this share of the keys, such as 0.1%
    #[arg(long, value_name = "SHARE", help_heading = "Limits")]
    pub(crate) suggest: Option<String>,
    /// Number of most denied keys to list
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Report")]
    pub(crate) worst: usize,
    /// Store to use instead of memory, such as redis://127.0.0.1:6379; runs at the log's time, in a
    /// namespace that is deleted afterwards
    #[arg(long, value_name = "URL", conflicts_with = "generate", help_heading = "Limits")]
    pub(crate) store: Option<String>,
    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024), help_heading = "Log")]
    pub(crate) threads: Option<u16>,

    /// Format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text", help_heading = "Report")]
    pub(crate) output: Form,
    /// Write every decision to this file, one JSON object per line, in the order of the log
    #[arg(long, value_name = "FILE", conflicts_with = "generate", help_heading = "Report")]
    pub(crate) decisions: Option<PathBuf>,
    /// Write the report with pictures to this file, as HTML
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) report: Option<PathBuf>,
    /// Write a picture to this file
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) svg: Option<PathBuf>,
    /// Picture to write [default: burst for a single key, otherwise time]
    #[arg(long, value_name = "PICTURE", requires = "svg", help_heading = "Report")]
    pub(crate) picture: Option<Picture>,

    /// Try synthetic traffic instead of a log: steady, poisson, bursts, zipf, diurnal or stampede, followed
    /// by parameters, such as "zipf rate 1000/s for 1h keys 100000 window 1min seed 7"
    #[arg(long, value_name = "TRAFFIC", help_heading = "Synthetic traffic")]
    pub(crate) generate: Option<String>,
    /// Write the synthetic traffic to this file as an access log, and exit
    #[arg(long, value_name = "FILE", requires = "generate", conflicts_with_all = ["limits", "policies"], help_heading = "Synthetic traffic")]
    pub(crate) write_log: Option<PathBuf>,
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
        None if argument.starts_with("redis") => masked_url(argument),
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
