//! Real gateways: the programs that ask the daemon before they pass a request on.

mod caddy;
mod envoy;
mod haproxy;
mod nginx;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::folder::Folder;
use crate::guard::Guard;
use crate::{Port, wait};

/// A gateway that can be started.
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
}

/// How one of them is found and started.
#[derive(Debug)]
struct Program {
    name: &'static str,
    /// The environment variable that names another binary.
    variable: &'static str,
    /// What to type where it is missing.
    remedy: &'static str,
    /// Where else than on the path it may be.
    elsewhere: &'static [&'static str],
    /// Whether `cargo xtask test` has it for sure where it may install packages, as in CI.
    is_packaged: bool,
    /// Puts what the test gave into the form that this gateway starts from, and says how.
    prepare: fn(program: &Path, folder: &Path) -> Vec<OsString>,
}

impl GatewayKind {
    fn program(self) -> &'static Program {
        match self {
            Self::Nginx => &nginx::PROGRAM,
            Self::Caddy => &caddy::PROGRAM,
            Self::Haproxy => &haproxy::PROGRAM,
            Self::Envoy => &envoy::PROGRAM,
        }
    }

    /// Whether it is installed. If not, standard error says that a test is skipped and what to type,
    /// even where a test's output is captured.
    ///
    /// # Panics
    ///
    /// If it is missing in CI although it has a package that `cargo xtask test` installs.
    #[track_caller]
    pub fn is_installed(self) -> bool {
        let program = self.program();
        if program.find().is_some() {
            return true;
        }
        let missing = format!("{} is not installed; {}", program.name, program.remedy);
        let in_ci = env::var_os("CI").is_some();
        assert!(!(in_ci && program.is_packaged), "{missing}");
        // Nobody is left to tell if that fails.
        let _ = writeln!(io::stderr(), "SKIPPED: {missing}");
        false
    }
}

impl Program {
    fn find(&self) -> Option<PathBuf> {
        let named = env::var_os(self.variable).filter(|named| !named.is_empty());
        if let Some(named) = named.map(PathBuf::from) {
            let is_file = named.is_file();
            assert!(is_file, "{} names {}, which is no file", self.variable, named.display());
            return Some(named);
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).map(|folder| folder.join(self.name));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let elsewhere = self.elsewhere.iter().map(|place| root.join(place));
        folders.chain(elsewhere).find(|path| path.is_file())
    }
}

/// A gateway of its own, killed when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    guard: Guard,
    // Last, so that the process is gone when its folder goes.
    folder: Folder,
}

impl Gateway {
    /// Starts `kind` with these files, each a name and a text, and waits until it listens on `port`.
    ///
    /// The files are as an operator writes them: a gateway whose main file includes them is given
    /// one, and the folder that they would be installed in becomes that of this gateway.
    ///
    /// # Panics
    ///
    /// If it is not installed, or does not listen in time. The message says what to type, or shows
    /// its log.
    #[track_caller]
    pub fn start(kind: GatewayKind, files: &[(&str, String)], port: &Port) -> Self {
        let program = kind.program();
        let binary = program.find();
        let binary = binary.unwrap_or_else(|| panic!("{}: {}", program.name, program.remedy));
        let folder = Folder::create();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file is written");
        }
        let command = (program.prepare)(&binary, folder.path());
        let words: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
        let guard = Guard::start(&words, &folder.path().join(LOG), folder.path());
        let mut gateway = Self { guard, folder };
        gateway.wait_until_ready(program, port.number());
        gateway
    }

    #[track_caller]
    fn wait_until_ready(&mut self, program: &Program, port: u16) {
        let ready = wait::until(|| {
            let listens = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            if listens { Some(true) } else { (!self.guard.is_running()).then_some(false) }
        });
        match ready {
            Some(true) => {}
            Some(false) => panic!("{} has ended at once; its log:\n{}", program.name, self.log()),
            None => panic!("{} does not listen; its log:\n{}", program.name, self.log()),
        }
    }

    /// Everything that it has written about itself.
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.path().join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.guard.server()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What it said may be why the test fails; nobody is left to tell if this fails.
            let _ = writeln!(io::stderr(), "the gateway's log:\n{}", self.log());
        }
    }
}

/// The only file of this name that is there, or the one that ends so.
fn file_ending(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("the folder is read");
    let mut paths = files.map(|file| file.expect("the folder is read").path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(ending));
    found.unwrap_or_else(|| panic!("no file {ending} was given"))
}

/// Replaces the folder that a file names by the one where it is now.
fn move_to(folder: &Path, file: &Path, installed: &str) {
    let text = fs::read_to_string(file).expect("a file is read");
    let moved = text.replace(installed, &folder.to_string_lossy());
    fs::write(file, moved).expect("a file is written");
}

const LOG: &str = "log";
