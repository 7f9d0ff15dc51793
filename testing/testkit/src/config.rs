//! Configuration of a server.

use std::fmt::Write;
use std::path::Path;

use crate::network::Host;
use crate::tls::Certificates;

/// The user of this crate's own connections, if clients need a password.
pub(crate) const CONTROL_USER: &str = "tollgate-control";

/// Configuration of a [`Server`](crate::Server). The default is a server without persistence.
#[derive(Clone, Debug, Default)]
pub struct Config {
    lines: Vec<String>,
    password: Option<String>,
    has_users: bool,
    /// The value of `tls-auth-clients`; `None` without TLS.
    tls_auth_clients: Option<String>,
    pub(crate) is_cluster: bool,
    pub(crate) is_sentinel: bool,
    /// The host on which the server runs; `None` for this one.
    pub(crate) host: Option<Host>,
}

impl Config {
    /// Adds a line of the configuration file, such as `maxmemory-policy noeviction`.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Sets the password of the user `default`; [`url`](crate::Server::url) contains it.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        // Replicas log in to their primary with the same password.
        self.line(&format!("requirepass {password}")).line(&format!("masterauth {password}"))
    }

    /// Adds a user with an access control list, such as `alice on >secret ~tg:* +@all`.
    #[must_use]
    pub fn user(mut self, rules: &str) -> Self {
        self.has_users = true;
        self.line(&format!("user {rules}"))
    }

    /// Accepts TLS only, with a generated certificate. Clients need no certificate; see
    /// [`tls_auth_clients`](Self::tls_auth_clients).
    #[must_use]
    pub fn tls(self) -> Self {
        self.tls_auth_clients("no")
    }

    /// Accepts TLS only; `mode` states whether clients need a certificate: `yes`, `no` or `optional`.
    #[must_use]
    pub fn tls_auth_clients(mut self, mode: &str) -> Self {
        self.tls_auth_clients = Some(mode.to_owned());
        self
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls_auth_clients.is_some()
    }

    pub(crate) fn cluster(mut self) -> Self {
        self.is_cluster = true;
        self
    }

    /// Makes the server a sentinel; add lines such as `sentinel monitor NAME HOST PORT QUORUM`. For a
    /// primary with several sentinels, see [`Sentinel`](crate::Sentinel).
    #[must_use]
    pub fn sentinel(mut self) -> Self {
        self.is_sentinel = true;
        self
    }

    pub(crate) fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// The address at which the server listens.
    pub(crate) fn address(&self) -> &str {
        self.host.as_ref().map_or("127.0.0.1", |host| &host.address)
    }

    pub(crate) fn needs_login(&self) -> bool {
        self.password.is_some() || self.has_users
    }

    /// The part of a URL before the host; empty without a password.
    pub(crate) fn login(&self) -> String {
        self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default()
    }

    /// The text of the configuration file.
    pub(crate) fn file(&self, folder: &Path, port: u16, bus: Option<u16>) -> String {
        let mut file = match &self.host {
            None => "bind 127.0.0.1 -::1\n".to_owned(),
            // Without a password, a server protects itself from clients on other hosts.
            Some(host) => format!("bind {}\nprotected-mode no\n", host.address),
        };
        file.push_str("save \"\"\nappendonly no\n");
        let mut add = |line: &str| {
            file.push_str(line);
            file.push('\n');
        };
        add(&format!("dir {}", folder.display()));
        // This crate connects here: unlike a port, the socket belongs to this server for certain.
        add(&format!("unixsocket {}", folder.join(SOCKET).display()));
        // The server writes to an append-only file before it replies. By default, it does so later while a
        // slow disk syncs, and loses the write if it is killed then.
        add("appendfsync no");
        // Start the first copy of a replica at once instead of waiting for more replicas.
        add("repl-diskless-sync-delay 0");
        match &self.tls_auth_clients {
            None => add(&format!("port {port}")),
            Some(mode) => {
                add(&format!("port 0\ntls-port {port}"));
                add(&Certificates::new(folder).lines(mode));
            }
        }
        if let Some(bus) = bus {
            add("cluster-enabled yes");
            add(&format!("cluster-port {bus}"));
        }
        if self.needs_login() {
            add(&format!("user {CONTROL_USER} on nopass ~* &* +@all"));
        }
        for line in &self.lines {
            let _ = writeln!(file, "{line}");
        }
        file
    }
}

pub(crate) const SOCKET: &str = "socket";
