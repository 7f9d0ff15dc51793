//! Runs servers on one core and load on another, so that they do not compete for CPU time.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::time::{ClockId, clock_gettime};

/// The core of the measured server.
pub const SERVER_CORE: &str = "0";
/// The core of the load generator.
pub const LOAD_CORE: &str = "1";

/// A process on [`SERVER_CORE`]. It is killed when this value is dropped, and when this process
/// ends.
#[derive(Debug)]
pub struct PinnedProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl PinnedProcess {
    /// Starts a command. The process sees a single core, so it starts as few threads as that needs.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(command: &Command) -> Result<Self> {
        let mut pinned = Command::new("setpriv");
        pinned.args(["--pdeathsig", "KILL", "taskset", "-c", SERVER_CORE]);
        pinned.arg(command.get_program()).args(command.get_args());
        pinned.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        pinned.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pinned.spawn().context("cannot start setpriv; install util-linux")?;
        let output = child.stdout.take().context("the process has no standard output")?;
        Ok(PinnedProcess { child, output: BufReader::new(output) })
    }

    /// Reads standard output up to the first line that contains `word`.
    ///
    /// # Errors
    /// The output ends before such a line.
    pub fn line_with(&mut self, word: &str) -> Result<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if line.contains(word) {
                return Ok(line);
            }
            line.clear();
        }
        bail!("the process ended and printed no line with {word:?}")
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for PinnedProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Moves all threads of a process to a core.
///
/// # Errors
/// `taskset` is missing or fails.
pub fn pin(id: u32, core: &str) -> Result<()> {
    let id = id.to_string();
    let output = Command::new("taskset").args(["-a", "-p", "-c", core, &id]).output();
    let output = output.context("cannot start taskset; install util-linux")?;
    ensure!(output.status.success(), "taskset: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The CPU time of all threads of a process in ns: from `schedstat`, or in the coarser ticks of
/// `stat` if the kernel has no `schedstat`.
///
/// # Errors
/// The process has ended.
pub fn cpu_ns(id: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
            return cpu_ticks(id);
        };
        sum += text.split_whitespace().next().context("schedstat is empty")?.parse::<u64>()?;
    }
    Ok(sum)
}

/// The CPU time of all threads of this process in ns, also of those that have ended.
///
/// # Errors
/// The clock returns no valid time.
pub fn own_cpu_ns() -> Result<u64> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Ok(u64::try_from(Duration::try_from(time)?.as_nanos())?)
}

/// The CPU time of all child processes that have ended, in ns.
///
/// # Errors
/// The system is not Linux.
pub fn children_cpu_ns() -> Result<u64> {
    stat_ticks(std::process::id(), 13)
}

/// A tick is 10 ms on every Linux platform.
const TICK_NS: u64 = 10_000_000;

fn cpu_ticks(id: u32) -> Result<u64> {
    stat_ticks(id, 11)
}

/// The sum of a user time and of the system time after it, in ns; `user` is the position of the
/// first after the process name.
fn stat_ticks(id: u32, user: usize) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The process name may contain any character and ends at the last parenthesis.
    let (_, fields) = text.rsplit_once(')').context("stat has no process name")?;
    let times = fields.split_whitespace().skip(user).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()? * TICK_NS)
}

/// Both cores, for work in this process on several threads.
///
/// # Errors
/// `taskset` is missing or fails.
pub fn unpin() -> Result<()> {
    pin(std::process::id(), &format!("{SERVER_CORE},{LOAD_CORE}"))
}

/// A command on [`LOAD_CORE`], and its standard output.
///
/// # Errors
/// The command is missing or fails.
pub fn run_load(arguments: &[&str]) -> Result<String> {
    let mut load = Command::new("taskset");
    let output = load.args(["-c", LOAD_CORE]).args(arguments).output();
    let output = output.context("cannot start taskset; install util-linux")?;
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    ensure!(output.status.success(), "{}: {stdout}{stderr}", arguments.join(" "));
    Ok(stdout)
}

/// Waits at most a minute until `is_done` returns true.
///
/// # Errors
/// It does not in that time; the error is `message`.
pub fn wait(message: &str, mut is_done: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..6_000 {
        if is_done() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("{message}")
}

/// The daemon's binary, built with the same profile as this benchmark.
///
/// # Errors
/// The binary does not exist.
pub fn tollgate() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(|deps| deps.parent()).context("no target folder")?;
    let tollgate = folder.join("tollgate");
    ensure!(
        tollgate.is_file(),
        "{} does not exist; build it with `cargo xtask bench`, or with \
         `cargo build --profile bench -p tollgate-cli`",
        tollgate.display()
    );
    Ok(tollgate)
}
