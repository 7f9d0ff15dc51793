//! Gateways, which check a request with the daemon before they forward it.

mod programs;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;

use self::programs::Program;
use crate::child_guard::ChildGuard;
use crate::folder::Folder;
use crate::{Port, program, server, wait};

/// A gateway program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayKind {
    /// <https://nginx.org>
    Nginx,
    /// <https://caddyserver.com>
    Caddy,
    /// <https://www.haproxy.org>
    Haproxy,
    /// <https://www.envoyproxy.io>
    Envoy,
    /// <https://traefik.io>
    Traefik,
}

impl GatewayKind {
    /// Whether it is installed. If not, standard error reports a skipped test and the command to
    /// install it.
    #[track_caller]
    pub fn is_installed(self) -> bool {
        let program = self.program();
        if program.find().is_some() {
            return true;
        }
        program::report_missing(program.name, program.remedy, program.is_packaged);
        false
    }
}

impl Program {
    fn find(&self) -> Option<PathBuf> {
        let named = env::var_os(self.variable).filter(|named| !named.is_empty());
        if let Some(named) = named.map(PathBuf::from) {
            let is_file = named.is_file();
            assert!(is_file, "{} is {}, which is not a file", self.variable, named.display());
            return Some(named);
        }
        let root = program::workspace();
        let mut places = self.places.iter().map(|place| root.join(place));
        program::find_on_path(self.name).or_else(|| places.find(|path| path.is_file()))
    }
}

/// A gateway process, killed on drop.
#[derive(Debug)]
pub struct Gateway {
    guard: ChildGuard,
    // The last field, so that the process ends before its folder is removed.
    folder: Folder,
}

impl Gateway {
    /// Starts `kind` with these files, each a name and a text, and waits until it listens on `port`.
    ///
    /// The files are those of an operator: nginx gets a main file that includes them, and paths of
    /// the installation folder are replaced.
    #[track_caller]
    pub fn start(kind: GatewayKind, files: &[(&str, String)], port: &Port) -> Self {
        let program = kind.program();
        let binary = program.find();
        let binary = binary.unwrap_or_else(|| panic!("{}: {}", program.name, program.remedy));
        let folder = Folder::create();
        for (name, text) in files {
            folder.write(name, text);
        }
        let command = (program.prepare)(&binary, folder.path());
        let args: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
        let guard = ChildGuard::start(&args, &folder.path().join(LOG), folder.path());
        let mut gateway = Self { guard, folder };
        gateway.wait_until_ready(&program, port.number());
        gateway
    }

    #[track_caller]
    fn wait_until_ready(&mut self, program: &Program, port: u16) {
        let ready = wait::until(|| {
            if (program.is_ready)(port) {
                Some(true)
            } else {
                (!self.guard.is_running()).then_some(false)
            }
        });
        match ready {
            Some(true) => {}
            Some(false) => panic!("{} exited; its log:\n{}", program.name, self.log()),
            None => panic!("{} does not listen; its log:\n{}", program.name, self.log()),
        }
    }

    /// The gateway's log.
    pub fn log(&self) -> String {
        server::read_log(&self.folder.path().join(LOG))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.guard.pid()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "the gateway's log:\n{}", self.log());
        }
    }
}

const LOG: &str = "log";
