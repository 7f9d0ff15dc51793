//! The words of `tollgate replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tollgate::masked_url;

use crate::arguments::Form;

/// What to begin with.
const EXAMPLES: &str = "\
Examples:
  tollgate replay access.log --limit \"10/s burst 20\" --limit \"300/min sliding\"
  tollgate replay access.log.1.gz access.log --limit 10/s --suggest 0.1% --report report.html
  kubectl logs deploy/web | tollgate replay - --limit 10/s --key \"{header.x-api-key|ip}\"
  tollgate replay access.log --config tollgate.yaml --rules
  tollgate replay --generate \"stampede rate 5/s keys 1\" --limit \"100/min fixed\" --svg edge.svg";

/// Run an access log through limits, and see who would have been denied
///
/// Every line is decided at the time that it tells. Several --limit are tried side by side, each on its
/// own. Exits with 0, with 130 if it was interrupted, which leaves what was found until then, and
/// with 2 on an error; that is also if no line asked anything.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// The logs in the order of their time, plain, .gz or .zst; - is standard input
    #[arg(value_name = "LOG", required_unless_present = "generate", conflicts_with = "generate")]
    pub(crate) logs: Vec<PathBuf>,
    /// Limits to try, such as "10/s burst 20" or "10/s; 1000/h sliding"; may be given several times
    #[arg(long = "limit", value_name = "LIMITS", help_heading = "What is tried")]
    pub(crate) limits: Vec<String>,
    /// The configuration file that --policy and --rules mean
    #[arg(long, value_name = "FILE", help_heading = "What is tried")]
    pub(crate) config: Option<PathBuf>,
    /// Try a policy of the configuration, with its overrides; may be given several times
    #[arg(
        long = "policy",
        value_name = "NAME",
        requires = "config",
        help_heading = "What is tried"
    )]
    pub(crate) policies: Vec<String>,
    /// Try the rules of the configuration: they say which policies hold for a line, and whose key it is
    #[arg(long, requires = "config", conflicts_with_all = ["key", "policies", "limits", "generate", "suggest", "verbs"], help_heading = "What is tried")]
    pub(crate) rules: bool,
    /// Who is limited, as in the rules of the configuration [default: {ip}; the key, where a log has
    /// one]
    #[arg(
        long,
        value_name = "TEMPLATE",
        conflicts_with = "generate",
        help_heading = "What is tried"
    )]
    pub(crate) key: Option<String>,

    /// What the logs are [default: what their first lines look like]
    #[arg(long, value_name = "FORMAT", conflicts_with = "generate", help_heading = "The log")]
    pub(crate) format: Option<LogFormat>,
    /// Which field of JSON or column of CSV is meant by one of our names, such as ip=remote.address
    #[arg(
        long = "field",
        value_name = "NAME=FIELD",
        conflicts_with = "generate",
        help_heading = "The log"
    )]
    pub(crate) fields: Vec<String>,
    /// The unit of times that are numbers
    #[arg(
        long,
        value_name = "UNIT",
        default_value = "s",
        conflicts_with = "generate",
        help_heading = "The log"
    )]
    pub(crate) time_unit: Unit,
    /// What becomes of stamps of whole seconds, as access logs have them
    #[arg(
        long,
        value_name = "HOW",
        default_value = "spread",
        conflicts_with = "generate",
        help_heading = "The log"
    )]
    pub(crate) stamps: Stamps,
    /// How late a line may be to be still put in order
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        conflicts_with = "generate",
        help_heading = "The log"
    )]
    pub(crate) reorder: String,
    /// Fail on the first line that cannot be read
    #[arg(long, conflicts_with = "generate", help_heading = "The log")]
    pub(crate) strict: bool,
    /// Lines have verbs, such as refund or release [default: if a CSV has a column `verb`]
    #[arg(long, conflicts_with = "generate", help_heading = "The log")]
    pub(crate) verbs: bool,

    /// Search the lowest numbers by which only this share of the keys would be denied, such as 0.1%
    #[arg(long, value_name = "SHARE", help_heading = "What is tried")]
    pub(crate) suggest: Option<String>,
    /// How many of the keys denied most are named
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "The report")]
    pub(crate) worst: usize,
    /// Decide on this store in place of memory, such as redis://127.0.0.1:6379, at the log's time, in a
    /// namespace that is deleted afterwards
    #[arg(long, value_name = "URL", conflicts_with = "generate", help_heading = "What is tried")]
    pub(crate) store: Option<String>,
    /// On how many threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024), help_heading = "The log")]
    pub(crate) threads: Option<u16>,

    /// How the report is written
    #[arg(short, long, value_name = "FORMAT", default_value = "text", help_heading = "The report")]
    pub(crate) output: Form,
    /// Write every decision into this file, as a JSON object a line, in the order of the log
    #[arg(long, value_name = "FILE", conflicts_with = "generate", help_heading = "The report")]
    pub(crate) decisions: Option<PathBuf>,
    /// Write the report with its pictures into this file, as HTML
    #[arg(long, value_name = "FILE", help_heading = "The report")]
    pub(crate) report: Option<PathBuf>,
    /// Write a picture into this file
    #[arg(long, value_name = "FILE", help_heading = "The report")]
    pub(crate) svg: Option<PathBuf>,
    /// Which picture [default: burst for a single key, else time]
    #[arg(long, value_name = "PICTURE", requires = "svg", help_heading = "The report")]
    pub(crate) picture: Option<Picture>,

    /// Try made-up traffic in place of a log: steady, poisson, bursts, zipf, diurnal or stampede, and
    /// what is not usual of it, such as "zipf rate 1000/s for 1h keys 100000 window 1min seed 7"
    #[arg(long, value_name = "TRAFFIC", help_heading = "Made-up traffic")]
    pub(crate) generate: Option<String>,
    /// Write made-up traffic into this file as an access log, and try nothing
    #[arg(long, value_name = "FILE", requires = "generate", conflicts_with_all = ["limits", "policies"], help_heading = "Made-up traffic")]
    pub(crate) write_log: Option<PathBuf>,
}

impl Replay {
    /// The words by which it was asked.
    pub(crate) fn command() -> String {
        let quoted = |os_string: OsString| {
            let text = without_password(&os_string.to_string_lossy());
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%@+".contains(c);
            if !text.is_empty() && text.chars().all(is_plain) {
                return text;
            }
            format!("'{}'", text.replace('\'', r"'\''"))
        };
        let words = std::env::args_os().skip(1).map(quoted);
        ["tollgate".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// A word of the command, which may be a URL with a password.
fn without_password(word: &str) -> String {
    match word.strip_prefix("--store=") {
        Some(url) => format!("--store={}", masked_url(url)),
        None if word.starts_with("redis") => masked_url(word),
        None => word.to_owned(),
    }
}

/// What a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// The common log format
    Common,
    /// The combined log format, with referer and user agent
    Combined,
    /// A JSON object a line
    Json,
    /// Comma-separated values with a header that names them
    Csv,
}

/// The unit of times that are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Seconds, with as many decimals as there are
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

/// What becomes of stamps of whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stamps {
    /// They are spread evenly over their second, in the order of the lines
    Spread,
    /// They are taken as they are
    Exact,
}

/// Which picture is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// What was admitted of what was offered, over time
    Time,
    /// How each alternative treats single requests; for short logs
    Burst,
    /// How much single keys asked at most
    Peaks,
}
