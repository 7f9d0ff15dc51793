//! Runs the binary `tollgate`, and other programs.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tollgate_testkit::Folder;

/// The token of daemons that require one.
pub(crate) const SECRET: &str = "9b1f62c5d07e41aa";

/// Configuration that requires the token.
pub(crate) const TOKENS: &str =
    "tokens: [{ name: gateway, token_file: ./gateway.token, scopes: [check] }]\n";

/// Flags for HTTP on a free port and no other listener.
pub(crate) const HTTP_ONLY: [&str; 8] =
    ["--http", "127.0.0.1:0", "--metrics", "off", "--grpc", "off", "--resp", "off"];

/// The binary, without the environment variables of its flags.
pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let names =
        ["URL", "CONFIG", "PASSWORD", "TOKEN", "TOKEN_FILE"].map(|name| format!("TOLLGATE_{name}"));
    for name in names {
        command.env_remove(name);
    }
    // Tests run at the same time, and the default address is one for all.
    command.env("TOLLGATE_LISTEN__ADMIN", "off");
    command.stdin(Stdio::null());
    command
}

/// Runs the binary. Returns the exit code, standard output and standard error.
pub(crate) fn run<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> (i32, String, String) {
    output(tollgate().args(arguments), b"")
}

/// Runs a command with this standard input. Returns the exit code, standard output and standard
/// error.
#[track_caller]
pub(crate) fn output(command: &mut Command, input: &[u8]) -> (i32, String, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // On another thread, so that a full pipe blocks neither side.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs a client program with this standard input, and returns its standard output.
#[track_caller]
pub(crate) fn printed(mut client: Command, input: &[u8]) -> String {
    let (code, printed, error) = output(&mut client, input);
    assert_eq!(code, 0, "{client:?}:\n{printed}{error}");
    printed
}

/// Compares line by line, so that a failure shows the line that differs.
#[track_caller]
pub(crate) fn check_lines(output: &str, expected: &str) {
    let expected = expected.trim_start_matches('\n');
    for (index, (found, expected)) in output.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of\n{output}", index + 1);
    }
    assert_eq!(output.lines().count(), expected.lines().count(), "{output}");
}

/// A path in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The text of a file in the repository.
pub(crate) fn read_repository(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

/// The text of the first code block of a page below a line that names this file or this text.
#[track_caller]
pub(crate) fn page_block(page: &str, name: &str) -> String {
    let (_, below) = page.split_once(&format!("`{name}`")).unwrap_or_else(|| panic!("no {name}"));
    let mut lines = below.lines().skip_while(|line| !line.trim_start().starts_with("```"));
    let fence = lines.next().unwrap_or_else(|| panic!("no block below {name}"));
    let indent = fence.len() - fence.trim_start().len();
    let lines = lines.take_while(|line| line.trim() != "```");
    let lines = lines.map(|line| line.get(indent..).unwrap_or_default());
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// A running daemon, killed on drop.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Standard error, if it is piped.
    pub(crate) log: Option<BufReader<ChildStderr>>,
    /// The output when it was ready.
    pub(crate) greeting: String,
    /// The URL of the first listener.
    pub(crate) url: String,
    folder: Option<Folder>,
}

impl Daemon {
    /// Starts a daemon with HTTP and metrics on free ports.
    pub(crate) fn start<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Self {
        Daemon::start_with(|command| command, arguments)
    }

    /// Like [`Daemon::start`]; `configure` configures the process.
    pub(crate) fn start_with<I: IntoIterator<Item: AsRef<OsStr>>>(
        configure: impl FnOnce(&mut Command) -> &mut Command,
        arguments: I,
    ) -> Self {
        let mut command = tollgate();
        command.arg("serve").args(arguments).args(["--http", "127.0.0.1:0"]);
        command.args(["--metrics", "127.0.0.1:0", "--grpc", "off", "--resp", "off"]);
        Daemon::spawn(configure(command.stderr(Stdio::null())))
    }

    /// Like [`Daemon::start_with`], with this configuration file.
    pub(crate) fn with_config(
        yaml: &str,
        configure: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let folder = Folder::create();
        let file = folder.write("tollgate.yaml", yaml);
        let mut daemon = Daemon::start_with(configure, ["--config".as_ref(), file.as_os_str()]);
        daemon.folder = Some(folder);
        daemon
    }

    /// Starts a daemon with the listener of one flag and these files, including `tollgate.yaml`.
    /// The file `gateway.token` contains [`SECRET`].
    pub(crate) fn with_listener(flag: &str, files: &[(&str, &str)]) -> Self {
        let folder = Folder::create();
        for (name, text) in [("gateway.token", SECRET)].iter().chain(files) {
            let file = folder.write(name, text);
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
        let mut command = tollgate();
        command.arg("serve").arg("--config").arg(folder.join("tollgate.yaml"));
        for other in ["--http", "--grpc", "--resp", "--metrics"] {
            command.args([other, if other == flag { "127.0.0.1:0" } else { "off" }]);
        }
        // The greeting contains a single address.
        let mut daemon = Daemon::spawn_until(&mut command, |line| line.contains("127.0.0.1:"));
        daemon.folder = Some(folder);
        daemon
    }

    /// Starts the daemon with a command that sets all listeners.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Daemon::spawn_until(command, |line| line.starts_with("  curl -i"))
    }

    /// Starts a command, and reads its output up to the line that `is_last` recognises.
    pub(crate) fn spawn_until(command: &mut Command, is_last: impl Fn(&str) -> bool) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut log = child.stderr.take().map(BufReader::new);
        let mut greeting = String::new();
        while !greeting.lines().next_back().is_some_and(&is_last) {
            if output.read_line(&mut greeting).unwrap() == 0 {
                if let Some(log) = &mut log {
                    log.read_to_string(&mut greeting).unwrap();
                }
                panic!("the daemon ended: {greeting}");
            }
        }
        let url = greeting.split_whitespace().find(|word| word.contains("://"));
        // A daemon may listen at Unix sockets only.
        let url = url.unwrap_or_default().to_owned();
        Daemon { child, output, log, greeting, url, folder: None }
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// `HOST:PORT` of the first listener.
    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// `HOST:PORT` of the metrics.
    pub(crate) fn metrics_address(&self) -> &str {
        let mut words = self.greeting.split_whitespace();
        let url = words.find_map(|word| word.strip_suffix("/metrics")).unwrap();
        url.strip_prefix("http://").unwrap()
    }

    /// Sends a signal. `STOP` is asynchronous: waits until every thread has stopped.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat"));
            stat.is_ok_and(|stat| stat.contains(") T "))
        };
        // Only Linux shows the states of threads.
        while signal == Signal::STOP
            && std::fs::read_dir(&tasks).is_ok_and(|mut tasks| !tasks.all(is_stopped))
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Waits for the process to exit. Returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing is printed after the greeting");
        self.child.wait().unwrap().code()
    }

    /// Stops the daemon with SIGINT, as in a terminal.
    pub(crate) fn stop(self) {
        self.signal(Signal::INT);
        assert_eq!(self.wait(), Some(0));
    }

    /// Stops the daemon, and returns the rest of its log.
    pub(crate) fn stop_and_read_log(mut self) -> String {
        let mut log = self.log.take().unwrap();
        self.stop();
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    }

    /// Ends the process at once.
    pub(crate) fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}
