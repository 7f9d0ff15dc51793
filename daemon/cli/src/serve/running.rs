//! What runs a daemon: the threads, the log, traces, open files.

use std::process::ExitCode;

use anyhow::Result;
use tollgate_server::Log;

use super::logs::Logs;
#[cfg(feature = "otlp")]
use super::traces::Traces;

/// Whether decisions are sent as spans, and as whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tracing {
    /// If the environment names a collector.
    OfEnvironment,
    /// They are not.
    Off,
    /// As those of this service.
    As(Service),
}

/// A service that sends traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) instance: Option<String>,
    /// Which share of the traces is sent that nobody before has decided on.
    pub(crate) sampled_millionths: u64,
}

/// Runs this on threads of its own to its end, with the log begun.
pub(crate) fn running(
    log: &Log,
    tracing: &Tracing,
    serve: impl AsyncFnOnce(Logs) -> Result<()>,
) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    #[cfg(feature = "otlp")]
    let (traces, listener) = Traces::start(runtime.handle(), tracing)?;
    #[cfg(not(feature = "otlp"))]
    let (_, listener) = (tracing, None);
    let logs = Logs::start(log, listener)?;
    raise_open_files();
    let served = runtime.block_on(serve(logs));
    #[cfg(feature = "otlp")]
    traces.stop();
    served.map(|()| ExitCode::SUCCESS)
}

/// Takes as many open files as the system gives: each connection is one, and many systems begin
/// with 1,024.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, connections wait for each other sooner.
    let _ = setrlimit(Resource::Nofile, limit);
}
