//! The environment of a running daemon: threads, log, traces, open files.

use std::process::ExitCode;

use anyhow::Result;
use tollgate_server::Log;

use super::logs::Logs;
#[cfg(feature = "otlp")]
use super::traces::Traces;
use super::tracing_mode::Tracing;

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
