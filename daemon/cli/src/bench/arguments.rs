//! The words of `tollgate bench`.

use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use tollgate::parse_duration;

use crate::arguments::Form;

/// Load a limiter, and say what it holds
///
/// Asks a daemon, a Redis or a limiter in process as fast as it answers, or with --rate at a steady
/// rate, and says how many were allowed, how long it took and what failed. With --verify it holds
/// what was admitted against the bound of each limit.
///
/// Exits with 0 when it is done, 1 if --verify found a violation, 2 on an error or where nobody
/// answers any more; interrupted, it says what there is by then and exits with 130.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Whom to ask: http://HOST:PORT, grpc://HOST:PORT, redis://HOST:PORT, or memory for a limiter in
    /// process; without a URL, http, grpc or redis with --host and --port
    /// [default: http, with --threshold redis]
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Where it listens, if TARGET does not say [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// At which port, if TARGET does not say [default: as `tollgate serve` listens; 6379 with
    /// --threshold]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Who asks, for AUTH
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The password for AUTH, or the token for HTTP and gRPC
    #[arg(long, value_name = "TEXT", env = "TOLLGATE_PASSWORD", hide_env_values = true)]
    pub(crate) password: Option<String>,

    /// A policy of the daemon's, by its name; over gRPC it is the domain
    #[arg(long, value_name = "NAME", help_heading = "What is asked")]
    pub(crate) policy: Option<String>,
    /// Limits in place of a policy [default: "10/s burst 20"]
    #[arg(long, value_name = "LIMIT", conflicts_with = "policy", help_heading = "What is asked")]
    pub(crate) limit: Option<String>,
    /// Count in a bare Redis, INCR and EXPIRE for each key and minute; so many a minute are allowed
    #[arg(
        long,
        value_name = "N",
        value_parser = value_parser!(u64).range(1..),
        conflicts_with_all = ["limit", "policy", "command"],
        help_heading = "What is asked"
    )]
    pub(crate) threshold: Option<u64>,
    /// The command that asks over redis://
    #[arg(long, value_name = "COMMAND", default_value = "check", help_heading = "What is asked")]
    pub(crate) command: Words,
    /// How much each request spends
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = value_parser!(u64).range(1..),
        help_heading = "What is asked"
    )]
    pub(crate) cost: u64,
    /// How long each lease is held, under a concurrent limit
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10ms",
        value_parser = time_or_none,
        help_heading = "What is asked"
    )]
    pub(crate) hold: Duration,
    /// How many keys there are
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000,
        value_parser = value_parser!(u32).range(1..=10_000_000),
        help_heading = "What is asked"
    )]
    pub(crate) keys: u32,
    /// Ask for the k-th key in proportion to 1/k^S, in place of all as often
    #[arg(long, value_name = "S", value_parser = exponent, help_heading = "What is asked")]
    pub(crate) zipf: Option<f64>,
    /// What keys begin with [default: bench- and something that no other run has]
    #[arg(long, value_name = "TEXT", help_heading = "What is asked")]
    pub(crate) key_prefix: Option<String>,
    /// The same seed asks for the same keys in the same order
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "What is asked")]
    pub(crate) seed: u64,

    /// Connections, or threads in process [default: 50, or as many as there are cores]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = value_parser!(u32).range(1..=10_000),
        help_heading = "How much"
    )]
    pub(crate) concurrency: Option<u32>,
    /// Requests under way on each connection [default: 1, over gRPC 8]
    #[arg(
        long,
        value_name = "N",
        value_parser = value_parser!(u32).range(1..=1_000),
        help_heading = "How much"
    )]
    pub(crate) pipeline: Option<u32>,
    /// Threads that the connections are spread over [default: half of the cores]
    #[arg(
        long,
        value_name = "N",
        value_parser = value_parser!(u32).range(1..=256),
        help_heading = "How much"
    )]
    pub(crate) threads: Option<u32>,
    /// Requests a second, whatever the answers: latency is counted from when each was due
    #[arg(
        long,
        value_name = "N",
        value_parser = value_parser!(u64).range(1..=100_000_000),
        help_heading = "How much"
    )]
    pub(crate) rate: Option<u64>,
    /// The most requests
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = value_parser!(u64).range(1..),
        help_heading = "How much"
    )]
    pub(crate) iterations: Option<u64>,
    /// How long requests are sent [default: 10s; with --iterations 1h]
    #[arg(short, long, value_name = "TIME", value_parser = time, help_heading = "How much")]
    pub(crate) duration: Option<Duration>,
    /// How long an answer may take, at most an hour
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        value_parser = patience,
        help_heading = "How much"
    )]
    pub(crate) timeout: Duration,

    /// Hold what was admitted against the bound of each limit
    #[arg(long, help_heading = "What is told")]
    pub(crate) verify: bool,
    /// Hold it against these limits in place of those that are asked for
    #[arg(long, value_name = "LIMIT", requires = "verify", help_heading = "What is told")]
    pub(crate) against: Option<String>,
    /// How the result is written
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "What is told"
    )]
    pub(crate) output: Form,
}

/// A command that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Words {
    /// TOLLGATE.CHECK
    Check,
    /// CL.THROTTLE, of a token bucket
    Throttle,
}

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);

fn time_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    time(text)
}

fn time(text: &str) -> Result<Duration, String> {
    let time: Duration = parse_duration(text).map_err(|error| error.to_string())?.into();
    if time > DAY { Err("it is at most 1d".to_owned()) } else { Ok(time) }
}

fn patience(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time > HOUR { Err("it is at most 1h".to_owned()) } else { Ok(time) }
}

fn exponent(text: &str) -> Result<f64, String> {
    let remedy = "write a number above 0 and at most 10, such as 1.0";
    let number: f64 = text.parse().map_err(|_| remedy.to_owned())?;
    if number > 0.0 && number <= 10.0 { Ok(number) } else { Err(remedy.to_owned()) }
}
