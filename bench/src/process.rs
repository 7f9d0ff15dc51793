//! Servers and what drives them, each on a core of its own, so that they do not take time from each
//! other.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The core of whatever is measured.
pub const SERVER_CORE: &str = "0";
/// The core of what drives it.
pub const LOAD_CORE: &str = "1";

/// A process on the core of servers, killed when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct Pinned {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Pinned {
    /// Starts a command there. It sees one core, and so makes no more threads than that needs.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &Command) -> Result<Self> {
        let mut pinned = Command::new("setpriv");
        pinned.args(["--pdeathsig", "KILL", "taskset", "-c", SERVER_CORE]);
        pinned.arg(command.get_program()).args(command.get_args());
        pinned.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pinned.spawn().context("setpriv and taskset, of util-linux")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Pinned { child, output })
    }

    /// The first line that it prints with `word` in it.
    ///
    /// # Errors
    /// It ends without one.
    pub fn line_with(&mut self, word: &str) -> Result<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if line.contains(word) {
                return Ok(line);
            }
            line.clear();
        }
        anyhow::bail!("it ended and printed no line with {word}")
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Moves all threads of a process to a core.
///
/// # Errors
/// `taskset` is missing, or refuses.
pub fn pin(id: u32, core: &str) -> Result<()> {
    let id = id.to_string();
    let output = Command::new("taskset").args(["-a", "-p", "-c", core, &id]).output();
    let output = output.context("taskset, of util-linux")?;
    ensure!(output.status.success(), "taskset: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// What all threads of a process have run so far, in ns, as the kernel's scheduler counts it: finer
/// than the ticks of `stat`, which it falls back to where the kernel does not tell.
///
/// # Errors
/// The process has gone.
pub fn cpu_ns(id: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
            return ticks(id);
        };
        sum += text.split_whitespace().next().context("schedstat")?.parse::<u64>()?;
    }
    Ok(sum)
}

/// A tick is 10 ms wherever Linux runs.
const TICK_NS: u64 = 10_000_000;

fn ticks(id: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name may hold anything, and ends with the last parenthesis; user and system time are the
    // twelfth and thirteenth field after it.
    let (_, fields) = text.rsplit_once(')').context("stat")?;
    let times = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()? * TICK_NS)
}

/// Waits until it is so, a minute at most.
///
/// # Errors
/// It never is.
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..6_000 {
        if is_so() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    anyhow::bail!("{what}")
}

/// The daemon that was built beside this benchmark, by the same profile.
///
/// # Errors
/// It was not built.
pub fn tollgate() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(|parent| parent.parent()).context("the target folder")?;
    let tollgate = folder.join("tollgate");
    ensure!(
        tollgate.is_file(),
        "{} is not there; cargo xtask bench builds it, or: cargo build --profile bench -p tollgate-cli",
        tollgate.display()
    );
    Ok(tollgate)
}
