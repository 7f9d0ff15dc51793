//! Validates a plan and probes its target.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate::{Cost, Limit, MAX_KEY_LEN, Policy};

use crate::connection::Connector;
use crate::error::LoadError;
use crate::grpc::Grpc;
use crate::memory::Memory;
use crate::plan::{Command, Endpoint, LimitedBy, Plan, Target};
use crate::reply::Reply;
use crate::tally::AdmissionTimes;
use crate::wire::{Wire, parse_greeting_reply};

/// Makes requests to the target.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    Memory(Memory),
    Remote(Connector, Protocol),
}

#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Wire(Wire),
    Grpc(Grpc),
}

/// A plan whose target has answered a probe.
#[derive(Clone, Debug)]
pub struct Runner {
    pub(crate) plan: Plan,
    pub(crate) client: Client,
    pub(crate) has_leases: bool,
    /// The limits to verify admissions against; empty without verification.
    pub(crate) verify: Vec<Limit>,
}

impl Runner {
    /// Sends one request that charges nothing, to check the address, the credentials and the
    /// policy. If admissions are verified, the reply also provides the limits.
    ///
    /// # Errors
    /// The plan is invalid, the target is unreachable, or it rejects the probe.
    pub fn new(plan: Plan) -> Result<Self, LoadError> {
        cost(plan.check.cost)?;
        let key_len = plan.keys.prefix.len() + plan.keys.width();
        if key_len > MAX_KEY_LEN {
            let reason = format!("keys of {key_len} bytes are too long; at most {MAX_KEY_LEN}");
            return Err(LoadError::InvalidPlan(reason));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| LoadError::System(error.to_string()))?;
        let local = tokio::task::LocalSet::new();
        let limits = runtime.block_on(local.run_until(probe_limits(&plan)))?;
        let has_leases = limits.iter().any(Limit::is_concurrent);
        if has_leases && plan.load.pipeline > 1 {
            return Err(LoadError::InvalidPlan(
                "--pipeline must be 1 under a concurrent limit, because each lease is held before \
                 the next request"
                    .to_owned(),
            ));
        }
        let client = client(&plan, has_leases)?;
        let verify = match &plan.verify {
            None => Vec::new(),
            Some(explicit) if !explicit.is_empty() => explicit.clone(),
            Some(_) if !limits.is_empty() => limits,
            Some(_) => {
                return Err(LoadError::InvalidPlan(
                    "--verify does not know the limits, because the responses do not contain them; \
                     name them with --against"
                        .to_owned(),
                ));
            }
        };
        Ok(Runner { plan, client, has_leases, verify })
    }

    /// Which times bound an admission, if admissions are verified.
    pub(crate) fn admission_times(&self) -> Option<AdmissionTimes> {
        let times = match &self.plan.target {
            Target::Http(_) | Target::Memory | Target::Resp(_, Command::Check) => {
                AdmissionTimes::Store
            }
            Target::Grpc(_) | Target::Resp(_, Command::Throttle) => AdmissionTimes::RoundTrip,
            Target::Resp(_, Command::Counter { .. }) => AdmissionTimes::Sent,
        };
        (!self.verify.is_empty()).then_some(times)
    }
}

fn client(plan: &Plan, has_leases: bool) -> Result<Client, LoadError> {
    let (check, keys) = (&plan.check, &plan.keys);
    let remote = |endpoint: &Endpoint, protocol| {
        let connector = Connector { address: endpoint.address(), timeout: plan.load.timeout };
        Client::Remote(connector, protocol)
    };
    Ok(match &plan.target {
        Target::Http(endpoint) => {
            remote(endpoint, Protocol::Wire(Wire::http(endpoint, check, keys, has_leases)))
        }
        Target::Resp(endpoint, command) => {
            let wire = Wire::resp(endpoint, *command, check, keys, has_leases)?;
            remote(endpoint, Protocol::Wire(wire))
        }
        Target::Grpc(endpoint) => {
            remote(endpoint, Protocol::Grpc(Grpc::new(endpoint, check, keys)?))
        }
        Target::Memory => {
            let LimitedBy::Limits(text) = &check.limited_by else {
                let reason = "a limiter in process has no policies; use --limit";
                return Err(LoadError::InvalidPlan(reason.to_owned()));
            };
            Client::Memory(Memory::new(inline_policy(text)?, cost(check.cost)?, keys))
        }
    })
}

fn cost(units: u64) -> Result<Cost, LoadError> {
    let max = Cost::MAX.get();
    Cost::new(units).ok_or_else(|| {
        LoadError::InvalidPlan(format!("--cost {units} is too large; at most {max}"))
    })
}

fn inline_policy(text: &str) -> Result<Policy, LoadError> {
    text.parse().map_err(|error| LoadError::InvalidPlan(format!("--limit {error}")))
}

/// Probes the target; returns the limits of the plan's check, as far as they are known.
async fn probe_limits(plan: &Plan) -> Result<Vec<Limit>, LoadError> {
    let inline = match &plan.check.limited_by {
        LimitedBy::Limits(text) => inline_policy(text)?.limits().to_vec(),
        LimitedBy::Policy(_) => Vec::new(),
    };
    let Client::Remote(connector, protocol) = client(plan, false)? else { return Ok(inline) };
    let address = &connector.address;
    let stream = connector.connect().await.map_err(|error| LoadError::Unreachable {
        address: address.clone(),
        reason: error.to_string(),
    })?;
    let texts = match protocol {
        Protocol::Wire(wire) => probe(&wire, stream, &connector).await?,
        Protocol::Grpc(grpc) => {
            let probed = grpc.probe(stream, connector.timeout).await.map_err(|error| {
                probe_failed(address, error.message, "is this the gRPC address of a daemon?")
            })?;
            if let (false, LimitedBy::Policy(domain)) = (probed.is_limited, &plan.check.limited_by)
            {
                return Err(LoadError::Unlimited { domain: domain.clone() });
            }
            Vec::new()
        }
    };
    if !inline.is_empty() {
        return Ok(inline);
    }
    let limits = texts.iter().map(|text| text.parse::<Limit>()).collect::<Result<_, _>>();
    limits.map_err(|error| {
        let hint = "is this a tollgate daemon of another version?";
        probe_failed(address, error.to_string(), hint)
    })
}

fn probe_failed(address: &str, reason: String, hint: &'static str) -> LoadError {
    LoadError::ProbeFailed { address: address.to_owned(), reason, hint }
}

async fn probe(
    wire: &Wire,
    stream: TcpStream,
    connector: &Connector,
) -> Result<Vec<String>, LoadError> {
    let Connector { address, timeout: limit } = connector;
    match timeout(*limit, exchange(wire, stream)).await {
        Ok(exchanged) => exchanged.map_err(|reason| probe_failed(address, reason, wire.hint())),
        Err(_elapsed) => {
            let reason = format!("no response within {limit:?}");
            Err(probe_failed(address, reason, wire.hint()))
        }
    }
}

/// Sends the greeting and the probe; returns the limits in the reply.
async fn exchange(wire: &Wire, mut stream: TcpStream) -> Result<Vec<String>, String> {
    let to_text = |error: std::io::Error| error.to_string();
    if let Some(greeting) = wire.greeting() {
        stream.write_all(greeting).await.map_err(to_text)?;
    }
    stream.write_all(wire.probe()).await.map_err(to_text)?;
    let mut input = Vec::new();
    loop {
        let read = stream.read_buf(&mut input).await.map_err(to_text)?;
        if let Some(limits) = parse_probe_reply(wire, &input)? {
            return Ok(limits);
        }
        if read == 0 {
            return Err("the server closed the connection".to_owned());
        }
    }
}

/// The limits in the reply to the probe, once it is complete.
fn parse_probe_reply(wire: &Wire, input: &[u8]) -> Result<Option<Vec<String>>, String> {
    let mut rest = input;
    if wire.greeting().is_some() {
        let Some(length) = parse_greeting_reply(input)? else { return Ok(None) };
        rest = &input[length..];
    }
    if rest.is_empty() {
        return Ok(None);
    }
    let parsed = wire.parse(rest).map_err(|error| error.0.to_owned())?;
    match parsed.map(|parsed| parsed.reply) {
        Some(Reply::Decision(_)) => Ok(Some(wire.limits(rest))),
        Some(Reply::Error(error)) => Err(error.message),
        None => Ok(None),
    }
}
