//! The readings of paths, compared with what real servers read: every spelling that a server routes
//! to `/login` must have that reading. A server that is not installed is skipped, and standard
//! error says so.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod spellings;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use tollgate_rules::{PathCase, Readings};

use crate::spellings::{DOT_NET, spellings};

/// A server that reports how it reads a path, killed on drop.
#[derive(Debug)]
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts a program of this folder; `None` if its interpreter is not installed.
    fn start(program: &str, arguments: &[&str]) -> Option<Self> {
        let is_installed = |folder: &Path| folder.join(program).is_file();
        let path = env::var_os("PATH").unwrap_or_default();
        if !env::split_paths(&path).any(|folder| is_installed(&folder)) {
            skip(program);
            return None;
        }
        let mut command = Command::new(program);
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("{program} printed {line:?}"));
        Some(Server { child, port })
    }

    /// The readings of the server that are `/login`, by the names that the program gives them.
    fn logins(&self, target: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = Vec::new();
        // A server may reject the request and reset the connection.
        let _ = stream.read_to_end(&mut response);
        let response = String::from_utf8_lossy(&response);
        let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if response.starts_with("HTTP/1.1 200") || response.starts_with("HTTP/1.0 200") {
            return body.to_owned();
        }
        String::new()
    }

    /// Compares all spellings.
    fn compare(&self, case: PathCase) {
        let mut unusual = 0;
        for target in spellings() {
            let logins = self.logins(&target);
            if !logins.trim().is_empty() {
                unusual += usize::from(target != "/login");
                assert!(has_login(&target, case), "{target}: {logins}");
            }
        }
        // A server that rejects everything proves nothing.
        assert!(unusual > 10, "only {unusual} spellings reach /login");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn skip(program: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
}

/// Whether a reading is `/login`. A target with too many readings is denied.
fn has_login(target: &str, case: PathCase) -> bool {
    Readings::new(target.as_bytes(), case)
        .map_or(true, |readings| readings.iter().any(|path| path.as_bytes() == b"/login"))
}

#[test]
fn readings_include_those_of_node() {
    if let Some(server) = Server::start("node", &["server.js"]) {
        server.compare(PathCase::Sensitive);
    }
}

#[test]
fn readings_include_those_of_go() {
    if let Some(server) = Server::start("go", &["run", "server.go"]) {
        server.compare(PathCase::Sensitive);
    }
}

#[test]
fn readings_include_those_of_python() {
    if let Some(server) = Server::start("python3", &["server.py"]) {
        server.compare(PathCase::Sensitive);
    }
}

/// The library of Debian's package `libtomcat10-embed-java`.
const TOMCAT: &str = "/usr/share/java/tomcat10-embed-core.jar";

#[test]
fn readings_include_those_of_tomcat() {
    if fs::metadata(TOMCAT).is_err() {
        return skip("tomcat");
    }
    // How it handles encoded slashes.
    for handling in ["decode", "passthrough"] {
        let Some(server) = Server::start("java", &["-cp", TOMCAT, "Server.java", handling]) else {
            return;
        };
        server.compare(PathCase::Sensitive);
    }
}

/// Rows instead of a server: see the sources in `spellings.rs`.
#[test]
fn readings_include_those_of_dot_net() {
    for target in DOT_NET {
        assert!(has_login(target, PathCase::Insensitive), "{target}");
    }
}
