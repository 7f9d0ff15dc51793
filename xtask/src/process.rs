//! Runs other programs. The command is printed first; output is passed on while it runs.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::mem;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// `cargo SUBCOMMAND` in `root`, in CI with `--locked`.
pub(crate) fn cargo(root: &Path, subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).arg(subcommand).stdin(Stdio::null());
    // Build scripts such as that of `ring` run again if they change. With those of this package, all that
    // needs `ring` would be compiled twice: here, and by the next command outside.
    let variables = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in variables {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    let takes_locked = ["bench", "build", "clippy", "doc", "run", "test"].contains(&subcommand);
    if takes_locked && env::var_os("CI").is_some() {
        command.arg("--locked");
    }
    command
}

/// The command as a user would type it.
pub(crate) fn display(command: &Command) -> String {
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

/// Runs it and passes its output on; an error if it fails.
pub(crate) fn run(mut command: Command) -> Result<()> {
    println!("$ {}", display(&command));
    let status = command.status().with_context(|| format!("cannot start {}", display(&command)))?;
    succeeded(status, &command)
}

/// Like [`run`], and also passes each line of standard output to `read`.
pub(crate) fn read_lines(command: Command, read: impl FnMut(&str)) -> Result<()> {
    read_lines_of_all(vec![command], |_| true, read)
}

/// Runs the commands at the same time, and passes each line of standard output to `read`. The output
/// of one command is printed up to a line for which `ends` holds before that of another. The error names each
/// command that failed.
pub(crate) fn read_lines_of_all(
    commands: Vec<Command>,
    ends: fn(&str) -> bool,
    mut read: impl FnMut(&str),
) -> Result<()> {
    let (sender, blocks) = mpsc::channel();
    let follow = |command| {
        println!("$ {}", display(&command));
        let sender = sender.clone();
        thread::spawn(move || {
            let shown = display(&command);
            send_blocks(command, ends, &sender).with_context(|| shown)
        })
    };
    let followed: Vec<_> = commands.into_iter().map(follow).collect();
    // The blocks end when each thread has dropped its sender.
    drop(sender);
    for block in blocks {
        print!("{block}");
        block.split_inclusive('\n').for_each(&mut read);
    }
    let finish = |thread: JoinHandle<_>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
    let ended: Vec<Result<()>> = followed.into_iter().map(finish).collect();
    let failures = ended.into_iter().filter_map(Result::err).map(|error| format!("{error:#}"));
    let failures: Vec<String> = failures.collect();
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    Ok(())
}

/// Runs it and sends its standard output in blocks up to a line for which `ends` holds.
fn send_blocks(
    mut command: Command,
    ends: fn(&str) -> bool,
    blocks: &Sender<String>,
) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("standard output is not piped")?;
    let (mut output, mut block, mut line) = (BufReader::new(output), String::new(), Vec::new());
    while output.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        block += &text;
        if ends(&text) {
            blocks.send(mem::take(&mut block))?;
        }
        line.clear();
    }
    blocks.send(block)?;
    succeeded(child.wait()?, &command)
}

/// Runs it without output and returns its standard output.
pub(crate) fn output(command: Command) -> Result<String> {
    captured(command).map(|(output, _)| output)
}

/// Runs it without output and returns its standard error.
pub(crate) fn error_output(command: Command) -> Result<String> {
    println!("$ {}", display(&command));
    captured(command).map(|(_, errors)| errors)
}

/// Standard output and standard error.
fn captured(mut command: Command) -> Result<(String, String)> {
    let output = command.output().with_context(|| format!("cannot start {}", display(&command)))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let errors = text(&output.stderr);
    if !output.status.success() {
        bail!("{} failed: {}", display(&command), errors.trim());
    }
    Ok((text(&output.stdout), errors))
}

fn succeeded(status: ExitStatus, command: &Command) -> Result<()> {
    if !status.success() {
        // The complete command is already printed.
        let whole = display(command);
        let subcommand = whole.split(" --").next().unwrap_or(&whole);
        bail!("`{subcommand}` failed: {status}");
    }
    Ok(())
}

/// The end of a run with a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Succeeded,
    Failed,
    TimedOut,
}

/// Runs it for at most `limit`, with its output in the file `log`.
pub(crate) fn run_within(mut command: Command, log: &Path, limit: Duration) -> Result<Exit> {
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    // A separate process group, so that the time limit also ends the command's children.
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", display(&command)))?;
    let stopwatch = Stopwatch::start();
    while stopwatch.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Exit::Succeeded } else { Exit::Failed });
        }
        thread::sleep(Duration::from_millis(10));
    }
    kill_group(&mut child)?;
    Ok(Exit::TimedOut)
}

fn kill_group(child: &mut Child) -> Result<()> {
    // The standard library cannot kill a group; every shell can.
    let kill = format!("kill -s KILL -- -{}", child.id());
    let killed = Command::new("sh").args(["-c", &kill]).status()?;
    if !killed.success() {
        child.kill()?;
    }
    child.wait()?;
    Ok(())
}

/// Measures elapsed time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "it times programs; no decision depends on it")]
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
    fn command_is_shown_as_typed() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["test", "--", ""]).env("RUSTFLAGS", "--cfg loom").env_remove("CI");
        assert_eq!(display(&command), "RUSTFLAGS='--cfg loom' cargo test -- ''");
    }

    #[test]
    fn cargo_does_not_get_the_variables_of_this_package() {
        let command = cargo(Path::new("."), "build");
        let removed = command.get_envs().filter(|(_, value)| value.is_none());
        let removed: Vec<_> = removed.filter_map(|(name, _)| name.to_str()).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
            assert!(removed.contains(&name), "{removed:?}");
        }
    }

    #[test]
    fn each_line_is_read_and_failure_is_reported() {
        let mut lines = Vec::new();
        let failed =
            read_lines(shell("echo one; printf two; exit 3"), |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["one\n", "two"]);
        assert!(failed.unwrap_err().to_string().contains("exit status: 3"));
    }

    #[test]
    fn commands_run_at_once_and_their_output_is_read_in_blocks() {
        let folder = env::temp_dir().join(format!("xtask-at-once-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Each waits for the file of the other.
        let script = |own: &str, other: &str| {
            let place = folder.display();
            let wait = format!("until test -e {place}/{other}; do sleep 0.01; done");
            shell(&format!(
                "echo {own}1; touch {place}/{own}; {wait}; echo {own}2; echo end; printf {own}3"
            ))
        };
        let commands = vec![script("a", "b"), script("b", "a"), shell("exit 3"), shell("exit 4")];
        let mut output = String::new();
        let failed = read_lines_of_all(commands, |line| line == "end\n", |line| output += line);
        for block in ["a1\na2\nend\n", "b1\nb2\nend\n", "a3", "b3"] {
            assert!(output.contains(block), "{output}");
        }
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("exit status: 3") && failed.contains("exit status: 4"), "{failed}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn time_limit_also_ends_children() {
        let log = env::temp_dir().join(format!("xtask-run-within-{}", std::process::id()));
        let minute = Duration::from_secs(60);
        assert_eq!(run_within(shell("exit 0"), &log, minute).unwrap(), Exit::Succeeded);
        assert_eq!(run_within(shell("echo why; exit 1"), &log, minute).unwrap(), Exit::Failed);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "why\n");

        // The subshell would write later if it were still running.
        let grandchild = shell("(sleep 0.5; echo late) & wait");
        let exit = run_within(grandchild, &log, Duration::from_millis(100)).unwrap();
        assert_eq!(exit, Exit::TimedOut);
        thread::sleep(Duration::from_millis(800));
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "");
        std::fs::remove_file(&log).unwrap();
    }
}
