//! How a server is set up.

use std::fmt::Write;
use std::path::Path;

use crate::tls::Certificates;

/// The user whom the crate itself logs in as where others need a password.
pub(crate) const CONTROL: &str = "tollgate-control";

/// How a [`Server`](crate::Server) is set up: what differs from a plain server without persistence.
#[derive(Clone, Debug, Default)]
pub struct Config {
    lines: Vec<String>,
    password: Option<String>,
    has_users: bool,
    /// Whether clients show a certificate; nothing without TLS.
    auth_clients: Option<String>,
    pub(crate) is_cluster: bool,
    pub(crate) is_sentinel: bool,
}

impl Config {
    /// Any line of a configuration file, as `maxmemory-policy noeviction`.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// The password of the user `default`, which then is part of [`url`](crate::Server::url).
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        // Replicas log in with what their primary asks for.
        self.line(&format!("requirepass {password}")).line(&format!("masterauth {password}"))
    }

    /// Another user with an access control list, as `alice on >secret ~tg:* +@all`.
    #[must_use]
    pub fn user(mut self, rules: &str) -> Self {
        self.has_users = true;
        self.line(&format!("user {rules}"))
    }

    /// The number of databases, 16 if not said.
    #[must_use]
    pub fn databases(self, databases: u32) -> Self {
        self.line(&format!("databases {databases}"))
    }

    /// The most memory in bytes, without eviction unless a line says so.
    #[must_use]
    pub fn maxmemory(self, bytes: u64) -> Self {
        self.line(&format!("maxmemory {bytes}"))
    }

    /// Lets clients change settings that are protected, as `dir`.
    #[must_use]
    pub fn enable_protected_configs(self) -> Self {
        self.line("enable-protected-configs yes")
    }

    /// Lets clients use `DEBUG`.
    #[must_use]
    pub fn enable_debug_command(self) -> Self {
        self.line("enable-debug-command yes")
    }

    /// Keeps what is written in an append-only file, so that it is there after a restart.
    #[must_use]
    pub fn appendonly(self) -> Self {
        self.line("appendonly yes")
    }

    /// Speaks TLS only, with certificates made for it. Clients need none of their own unless
    /// [`tls_auth_clients`](Self::tls_auth_clients) says so.
    #[must_use]
    pub fn tls(self) -> Self {
        self.tls_auth_clients("no")
    }

    /// Speaks TLS only, and asks clients for a certificate: `yes`, `no` or `optional`.
    #[must_use]
    pub fn tls_auth_clients(mut self, whether: &str) -> Self {
        self.auth_clients = Some(whether.to_owned());
        self
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.auth_clients.is_some()
    }

    pub(crate) fn cluster(mut self) -> Self {
        self.is_cluster = true;
        self
    }

    pub(crate) fn sentinel(mut self) -> Self {
        self.is_sentinel = true;
        self
    }

    pub(crate) fn needs_login(&self) -> bool {
        self.password.is_some() || self.has_users
    }

    /// What stands before the host in a URL.
    pub(crate) fn login(&self) -> String {
        self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default()
    }

    /// The whole file.
    pub(crate) fn file(&self, folder: &Path, port: u16, bus: Option<u16>) -> String {
        let mut file = String::from("bind 127.0.0.1 -::1\nsave \"\"\nappendonly no\n");
        let mut add = |line: &str| {
            file.push_str(line);
            file.push('\n');
        };
        add(&format!("dir {}", folder.display()));
        // The control connection's way in. In a folder of its own it is this server and no other.
        add(&format!("unixsocket {}", folder.join(SOCKET).display()));
        // A replica's first copy is not kept waiting for others that might want one.
        add("repl-diskless-sync-delay 0");
        match &self.auth_clients {
            None => add(&format!("port {port}")),
            Some(whether) => {
                add(&format!("port 0\ntls-port {port}"));
                add(&Certificates::new(folder).lines(whether));
            }
        }
        if let Some(bus) = bus {
            add("cluster-enabled yes");
            add(&format!("cluster-port {bus}"));
        }
        if self.needs_login() {
            add(&format!("user {CONTROL} on nopass ~* &* +@all"));
        }
        for line in &self.lines {
            let _ = writeln!(file, "{line}");
        }
        file
    }
}

pub(crate) const SOCKET: &str = "socket";
