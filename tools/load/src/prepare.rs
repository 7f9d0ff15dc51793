//! Whether a plan can be run, and what it takes.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate::{Cost, Limit, Policy};

use crate::answer::Reply;
use crate::connection::connect;
use crate::error::LoadError;
use crate::grpc::Grpc;
use crate::memory::Memory;
use crate::plan::{Command, LimitedBy, Peer, Plan, Target};
use crate::session::greeted;
use crate::tally::Stamps;
use crate::wire::{Http, Resp, Wire};

/// How requests are made.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    Wire(Wire),
    Grpc(Grpc),
    Memory(Memory),
}

/// A plan that the other side has agreed to.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) asking: Asking,
    pub(crate) has_leases: bool,
    /// The limits that what is admitted is held against.
    pub(crate) against: Vec<Limit>,
}

impl Prepared {
    /// Asks once, for nothing: whether anybody is there, takes the password, and knows the policy. For
    /// a run that is verified it learns the limits.
    ///
    /// # Errors
    /// Nobody is there, or what is there would not answer the run's requests.
    pub fn of(plan: Plan) -> Result<Self, LoadError> {
        cost(plan.question.cost)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| LoadError::System(error.to_string()))?;
        let local = tokio::task::LocalSet::new();
        let limits = runtime.block_on(local.run_until(named_limits(&plan)))?;
        let has_leases = limits.iter().any(Limit::is_concurrent);
        if has_leases && plan.load.pipeline > 1 {
            return Err(LoadError::Plan(
                "a lease is held before the next is taken, so --pipeline must be 1".to_owned(),
            ));
        }
        let asking = asking(&plan, has_leases)?;
        let against = match &plan.against {
            Some(given) if !given.is_empty() => given.clone(),
            Some(_) if limits.is_empty() => {
                return Err(LoadError::Plan(
                    "--verify has no limits to hold what is admitted against, and the answers do \
                     not name them; write them with --against"
                        .to_owned(),
                ));
            }
            Some(_) => limits,
            None => Vec::new(),
        };
        Ok(Prepared { plan, asking, has_leases, against })
    }

    pub(crate) fn stamps(&self) -> Option<Stamps> {
        let stamps = match &self.plan.target {
            Target::Http(_) | Target::Memory | Target::Resp(_, Command::Check) => Stamps::Store,
            Target::Grpc(_) | Target::Resp(_, Command::Throttle) => Stamps::Caller,
            Target::Resp(_, Command::Counter { .. }) => Stamps::Sent,
        };
        (!self.against.is_empty()).then_some(stamps)
    }
}

fn asking(plan: &Plan, leases: bool) -> Result<Asking, LoadError> {
    let (question, keys) = (&plan.question, &plan.keys);
    Ok(match &plan.target {
        Target::Http(peer) => Asking::Wire(Wire::Http(Http::new(peer, question, keys, leases))),
        Target::Resp(peer, command) => {
            Asking::Wire(Wire::Resp(Resp::new(peer, *command, question, keys, leases)))
        }
        Target::Grpc(peer) => Asking::Grpc(Grpc::new(peer, question, keys)),
        Target::Memory => {
            let LimitedBy::Limits(text) = &question.limited_by else {
                let why = "in process there are no policies; write a limit with --limit";
                return Err(LoadError::Plan(why.to_owned()));
            };
            let policy: Policy =
                text.parse().map_err(|error| LoadError::Plan(format!("--limit {error}")))?;
            Asking::Memory(Memory::new(policy, cost(question.cost)?, keys.clone()))
        }
    })
}

fn cost(units: u64) -> Result<Cost, LoadError> {
    let most = Cost::MAX.get();
    let why = || LoadError::Plan(format!("--cost {units} is too large; at most {most}"));
    Cost::new(units).ok_or_else(why)
}

/// The limits of what is asked for, as far as they are known, once somebody has answered.
async fn named_limits(plan: &Plan) -> Result<Vec<Limit>, LoadError> {
    let own = match &plan.question.limited_by {
        LimitedBy::Limits(text) => text
            .parse::<Policy>()
            .map(|text| text.limits().to_vec())
            .map_err(|error| LoadError::Plan(format!("--limit {error}")))?,
        LimitedBy::Policy(_) => Vec::new(),
    };
    let Some(peer) = plan.target.peer() else { return Ok(own) };
    let patience = plan.load.timeout;
    let unreachable = |why: String| LoadError::Unreachable { address: peer.address(), why };
    let stream = connect(peer, patience).await.map_err(|error| unreachable(error.to_string()))?;
    let texts = match asking(plan, false)? {
        Asking::Wire(wire) => probe(&wire, stream, peer, patience).await?,
        Asking::Grpc(grpc) => {
            let refused = |(_, why)| refused(peer, why, "is it the address of gRPC?");
            let is_limited = grpc.probe(stream, patience).await.map_err(refused)?;
            if let (false, LimitedBy::Policy(domain)) = (is_limited, &plan.question.limited_by) {
                return Err(LoadError::Unlimited { domain: domain.clone() });
            }
            Vec::new()
        }
        Asking::Memory(_) => Vec::new(),
    };
    if !own.is_empty() {
        return Ok(own);
    }
    let read = texts.iter().map(|text| text.parse::<Limit>());
    let remedy = "is it a tollgate daemon of another version?";
    let unread =
        |notation_error: tollgate::NotationError| refused(peer, notation_error.to_string(), remedy);
    read.collect::<Result<_, _>>().map_err(unread)
}

fn refused(peer: &Peer, why: String, remedy: &'static str) -> LoadError {
    LoadError::Refused { address: peer.address(), why, remedy }
}

async fn probe(
    wire: &Wire,
    stream: TcpStream,
    peer: &Peer,
    patience: Duration,
) -> Result<Vec<String>, LoadError> {
    let is_greeted = wire.greeting().is_some();
    let mut output = wire.greeting().unwrap_or_default().to_vec();
    output.extend_from_slice(wire.probe());
    let exchange = exchange(wire, &stream, &output, is_greeted);
    let answered = timeout(patience, exchange).await;
    let late = |_| refused(peer, format!("nothing came in {patience:?}"), wire.remedy());
    answered.map_err(late)?.map_err(|why| refused(peer, why, wire.remedy()))
}

async fn exchange(
    wire: &Wire,
    stream: &TcpStream,
    output: &[u8],
    is_greeted: bool,
) -> Result<Vec<String>, String> {
    let words = |error: std::io::Error| error.to_string();
    let mut written = 0;
    while written < output.len() {
        stream.writable().await.map_err(words)?;
        written += unless_blocked(stream.try_write(&output[written..])).map_err(words)?;
    }
    let mut input = Vec::new();
    loop {
        stream.readable().await.map_err(words)?;
        let ended = matches!(stream.try_read_buf(&mut input), Ok(0));
        if let Some(limits) = agreed(wire, &input, is_greeted)? {
            return Ok(limits);
        }
        if ended {
            return Err("the other side closed the connection".to_owned());
        }
    }
}

/// The limits that the probe's reply names, once it is there whole.
fn agreed(wire: &Wire, input: &[u8], is_greeted: bool) -> Result<Option<Vec<String>>, String> {
    let mut rest = input;
    if is_greeted {
        let Some(length) = greeted(input)? else { return Ok(None) };
        rest = &input[length..];
    }
    if rest.is_empty() {
        return Ok(None);
    }
    match wire.read(rest).map_err(|error| error.0.to_owned())?.map(|error| error.reply) {
        Some(Reply::Answer(_)) => Ok(Some(wire.limits(rest))),
        Some(Reply::Error(_, why)) => Err(why),
        None => Ok(None),
    }
}

fn unless_blocked(it: std::io::Result<usize>) -> std::io::Result<usize> {
    match it {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
