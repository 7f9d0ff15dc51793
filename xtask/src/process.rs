//! Other programs: each is printed before it runs, and what it says is passed on while it runs.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// `cargo SUBCOMMAND` in `root`. In CI the lock file is held to.
pub(crate) fn cargo(root: &Path, subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).arg(subcommand).stdin(Stdio::null());
    let own = ["bench", "build", "doc", "rustc", "test", "tree"].contains(&subcommand);
    if own && env::var_os("CI").is_some() {
        command.arg("--locked");
    }
    command
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.display(), quoted(&value.to_string_lossy())));
        }
    }
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    words.push(name.to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && !word.contains([' ', '"', '$', '*', ';', '{', '(']);
    if plain { word.to_owned() } else { format!("'{word}'") }
}

/// Runs it in view; an error if it fails.
pub(crate) fn run(mut command: Command) -> Result<()> {
    println!("$ {}", shown(&command));
    let status = command.status().with_context(|| format!("cannot start {}", shown(&command)))?;
    succeeded(status, &command)
}

/// Runs it in view and hands each line of its standard output to `read` as well.
pub(crate) fn read_lines(mut command: Command, mut read: impl FnMut(&str)) -> Result<()> {
    println!("$ {}", shown(&command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(&command)))?;
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            read(&text);
            line.clear();
        }
    }
    succeeded(child.wait()?, &command)
}

/// Runs it unseen and returns its standard output.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", shown(&command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(&command), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn succeeded(status: ExitStatus, command: &Command) -> Result<()> {
    if !status.success() {
        // The whole command stands above already.
        let whole = shown(command);
        let subcommand = whole.split(" --").next().unwrap_or(&whole);
        bail!("`{subcommand}` ended with {status}");
    }
    Ok(())
}

/// How a bounded run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Succeeded,
    Failed,
    OutOfTime,
}

/// Runs it unseen, for at most `limit`, with everything that it says in the file `log`.
pub(crate) fn run_within(mut command: Command, log: &Path, limit: Duration) -> Result<Ended> {
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    // A group of its own, so that the end of time also reaches what the command has started.
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", shown(&command)))?;
    let stopwatch = Stopwatch::start();
    while stopwatch.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Ended::Succeeded } else { Ended::Failed });
        }
        thread::sleep(Duration::from_millis(10));
    }
    kill_group(&mut child)?;
    Ok(Ended::OutOfTime)
}

fn kill_group(child: &mut Child) -> Result<()> {
    // The standard library kills one process only; every shell can kill a group.
    let kill = format!("kill -s KILL -- -{}", child.id());
    let killed = Command::new("sh").args(["-c", &kill]).status()?;
    if !killed.success() {
        child.kill()?;
    }
    child.wait()?;
    Ok(())
}

/// How long something takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "it times the programs it runs, it decides nothing"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["test", "--", ""]).env("RUSTFLAGS", "--cfg loom").env_remove("CI");
        assert_eq!(shown(&command), "RUSTFLAGS='--cfg loom' cargo test -- ''");
    }

    #[test]
    fn lines_are_read_while_they_are_passed_on() {
        let mut lines = Vec::new();
        let failed =
            read_lines(shell("echo one; printf two; exit 3"), |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["one\n", "two"]);
        assert!(failed.unwrap_err().to_string().contains("exit status: 3"));
    }

    #[test]
    fn the_end_of_time_reaches_children_too() {
        let log = env::temp_dir().join(format!("xtask-run-within-{}", std::process::id()));
        let minute = Duration::from_secs(60);
        assert_eq!(run_within(shell("exit 0"), &log, minute).unwrap(), Ended::Succeeded);
        assert_eq!(run_within(shell("echo why; exit 1"), &log, minute).unwrap(), Ended::Failed);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "why\n");

        // The subshell would speak later; it must not live to do so.
        let grandchild = shell("(sleep 0.5; echo late) & wait");
        let ended = run_within(grandchild, &log, Duration::from_millis(100)).unwrap();
        assert_eq!(ended, Ended::OutOfTime);
        thread::sleep(Duration::from_millis(800));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "");
        std::fs::remove_file(&log).unwrap();
    }
}
