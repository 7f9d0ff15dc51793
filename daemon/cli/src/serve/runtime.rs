//! The environment of a running daemon: threads, log, traces, open files.

use std::process::ExitCode;

use anyhow::Result;
use tollgate_daemon::Log;

use super::logs::Logs;
#[cfg(feature = "otlp")]
use super::traces::Traces;

/// Whether decisions are exported as spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tracing {
    /// If the environment variables name a collector.
    FromEnvironment,
    /// Never.
    Off,
    /// With the attributes of this service.
    As(Service),
}

/// The service that spans name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) instance: Option<String>,
    /// The share of traces to export, in millionths, unless the caller has decided.
    pub(crate) sampled_millionths: u64,
}

/// Starts the log and runs `serve` on a new runtime until it ends.
pub(crate) fn run_async(
    log: &Log,
    tracing: &Tracing,
    serve: impl AsyncFnOnce(Logs) -> Result<()>,
) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    #[cfg(feature = "otlp")]
    let (traces, layer) = Traces::start(runtime.handle(), tracing)?;
    #[cfg(not(feature = "otlp"))]
    let (_, layer) = (tracing, None);
    let logs = Logs::start(log, layer)?;
    raise_open_files();
    #[cfg(target_os = "linux")]
    refuse_huge_pages();
    let result = runtime.block_on(serve(logs));
    #[cfg(feature = "otlp")]
    traces.stop();
    result.map(|()| ExitCode::SUCCESS)
}

/// Raises the limit of open files, often 1,024, to the maximum: each connection needs one.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With a lower limit, more connections wait.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Keeps the allocator and the kernel from using transparent huge pages: the process would need more than
/// `store.max_bytes` and a third.
#[cfg(target_os = "linux")]
fn refuse_huge_pages() {
    // A kernel without them has nothing to refuse.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
