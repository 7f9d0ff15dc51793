//! The arguments of `tollgate bench`.

use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use tollgate::parse_duration;

use crate::arguments::{Form, Token};

/// Load-test a rate limiter
///
/// Sends requests to a daemon, a Redis server or a limiter in process, as fast as it responds or,
/// with --rate, at a fixed rate. Reports how many requests were allowed, their latencies and
/// errors. With --verify, checks that no limit admitted more than it allows.
///
/// Exit codes: 0 finished, 1 --verify found a violation, 2 error or target lost, 130 interrupted
/// (the report covers the requests until then).
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// The target: http://HOST:PORT, grpc://HOST:PORT, redis://HOST:PORT, or memory for a limiter
    /// in process; or only http, grpc or redis together with --host and --port [default: http; with
    /// --threshold redis]
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Host of the target, if TARGET does not contain it [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Port of the target, if TARGET does not contain it [default: the port of `tollgate serve` for
    /// the protocol; 6379 with --threshold]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// User name for AUTH
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Password for AUTH, or token for HTTP and gRPC [default: the token of --token-file]
    #[arg(long, value_name = "TEXT", env = "TOLLGATE_PASSWORD", hide_env_values = true)]
    pub(crate) password: Option<String>,
    #[command(flatten)]
    pub(crate) token: Token,

    #[command(flatten)]
    pub(crate) requests: Requests,
    #[command(flatten)]
    pub(crate) load: Load,

    /// Check that no limit admitted more than it allows
    #[arg(long, help_heading = "Report")]
    pub(crate) verify: bool,
    /// Limits to check against, instead of those of the requests
    #[arg(long, value_name = "LIMIT", requires = "verify", help_heading = "Report")]
    pub(crate) against: Option<String>,
    /// Format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text", help_heading = "Report")]
    pub(crate) output: Form,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Requests {
    /// Name of a policy of the daemon; over gRPC the domain
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Inline limits instead of a policy [default: "10/s burst 20"]
    #[arg(long, value_name = "LIMIT", conflicts_with = "policy")]
    pub(crate) limit: Option<String>,
    /// Count with INCR and EXPIRE per key and minute on a plain Redis server, and allow N per
    /// minute
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    #[arg(conflicts_with_all = ["limit", "policy", "command"])]
    pub(crate) threshold: Option<u64>,
    /// RESP command of each request
    #[arg(long, value_name = "COMMAND", default_value = "check")]
    pub(crate) command: RespCommand,
    /// Cost of each request
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    pub(crate) cost: u64,
    /// How long to hold each lease under a concurrent limit
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration_or_zero)]
    pub(crate) hold: Duration,
    /// Number of keys
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub(crate) keys: u32,
    /// Choose the k-th key with a probability proportional to 1/k^S; by default, all keys are
    /// equally likely
    #[arg(long, value_name = "S", value_parser = exponent)]
    pub(crate) zipf: Option<f64>,
    /// Prefix of all keys [default: bench- and a random id]
    #[arg(long, value_name = "TEXT")]
    pub(crate) key_prefix: Option<String>,
    /// Seed of the order of keys; equal seeds choose the same keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Connections; threads for a limiter in process [default: 50; in process the number of cores]
    #[arg(short, long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: Option<u32>,
    /// Requests in flight on each connection [default: 1; over gRPC 8]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) pipeline: Option<u32>,
    /// Threads that share the connections [default: half of the cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Requests per second, independent of responses; latency counts from the scheduled time
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000_000))]
    pub(crate) rate: Option<u64>,
    /// Maximum number of requests
    #[arg(short = 'n', long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
    /// How long to send requests [default: 10s; with --iterations 1h]
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// How long to wait for a response; at most an hour
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = timeout)]
    pub(crate) timeout: Duration,
}

/// The RESP command of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RespCommand {
    /// TOLLGATE.CHECK
    Check,
    /// CL.THROTTLE, for a token bucket
    Throttle,
}

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);

fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration: Duration = parse_duration(text).map_err(|error| error.to_string())?.into();
    if duration > DAY { Err("must be at most 1d".to_owned()) } else { Ok(duration) }
}

fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration(text)?;
    if timeout > HOUR { Err("must be at most 1h".to_owned()) } else { Ok(timeout) }
}

fn exponent(text: &str) -> Result<f64, String> {
    let hint = "use a number above 0 and at most 10, such as 1.0";
    let number: f64 = text.parse().map_err(|_| hint.to_owned())?;
    if number > 0.0 && number <= 10.0 { Ok(number) } else { Err(hint.to_owned()) }
}
