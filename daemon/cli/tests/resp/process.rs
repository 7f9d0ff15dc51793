//! A daemon with a single listener.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use tollgate_testkit::Folder;

/// A running daemon, killed on drop.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    _folder: Folder,
    pub(crate) port: u16,
    /// Kept open, because a write to a closed pipe would kill the process.
    _output: BufReader<ChildStdout>,
}

impl Daemon {
    /// Starts a daemon with the listener of one flag and with these files, including `tollgate.yaml`.
    /// The file `gateway.token` contains [`SECRET`].
    pub(crate) fn start(listener: &str, files: &[(&str, &str)]) -> Self {
        let folder = Folder::create();
        for (name, text) in [("gateway.token", SECRET)].iter().chain(files) {
            let file = folder.write(name, text);
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.arg("serve").arg("--config").arg(folder.join("tollgate.yaml"));
        for flag in ["--http", "--grpc", "--resp", "--metrics"] {
            command.args([flag, if flag == listener { "127.0.0.1:0" } else { "off" }]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // The greeting contains a single address.
        while !line.contains("127.0.0.1:") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the daemon ended");
        }
        let port = line.trim().rsplit_once(':').unwrap().1.parse().unwrap();
        Daemon { child, _folder: folder, port, _output: output }
    }
}

/// The token.
pub(crate) const SECRET: &str = "9b1f62c5d07e41aa";

/// Configuration that requires the token.
pub(crate) const TOKENS: &str =
    "tokens: [{ name: gateway, token_file: ./gateway.token, scopes: [check] }]\n";

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
