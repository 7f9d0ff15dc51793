//! A daemon that listens for one kind of client alone.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running daemon, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    folder: PathBuf,
    pub(crate) port: u16,
    /// Kept open, because a write to a closed pipe would kill the process.
    _output: BufReader<ChildStdout>,
}

impl Daemon {
    /// With this flag alone not off, and with these files, `tollgate.yaml` among them;
    /// `gateway.token` holds [`SECRET`].
    pub(crate) fn start(listens: &str, files: &[(&str, &str)]) -> Self {
        let folder = folder();
        for (name, text) in [("gateway.token", SECRET)].iter().chain(files) {
            let file = folder.join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.arg("serve").arg("--config").arg(folder.join("tollgate.yaml"));
        for flag in ["--http", "--grpc", "--resp", "--metrics"] {
            command.args([flag, if flag == listens { "127.0.0.1:0" } else { "off" }]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        // There is one address in the greeting.
        while !line.contains("127.0.0.1:") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let port = line.trim().rsplit_once(':').unwrap().1.parse().unwrap();
        Daemon { child, folder, port, _output: output }
    }
}

/// A token's text.
pub(crate) const SECRET: &str = "9b1f62c5d07e41aa";

/// Lines that let only that token in.
pub(crate) const TOKENS: &str =
    "tokens: [{ name: gateway, token_file: ./gateway.token, scopes: [check] }]\n";

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-clients-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}
