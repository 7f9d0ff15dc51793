//! A Redis or Valkey server.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::child_guard::ChildGuard;
use crate::config::{CONTROL_USER, SOCKET};
use crate::folder::Folder;
use crate::port::Port;
use crate::tls::Certificates;
use crate::{Config, Connection, Network, Reply, program, wait};

/// A Redis or Valkey server, killed on drop.
#[derive(Debug)]
pub struct Server {
    config: Config,
    process: Mutex<Process>,
    port: Port,
    /// The port of the cluster bus.
    bus: Option<Port>,
    // The last field, so that the process ends before its folder is removed.
    folder: Folder,
}

/// The process, if the server has not been killed.
#[derive(Debug, Default)]
struct Process {
    guard: Option<ChildGuard>,
    is_paused: bool,
}

/// Another process may take a reserved port before the server binds it.
const MAX_ATTEMPTS: usize = 5;

impl Server {
    /// Starts a server without persistence, in about 20 ms.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(|config| config)
    }

    /// Starts a server on a host of a network.
    #[track_caller]
    pub fn start_on(network: &Network, index: u8) -> Self {
        Self::with(|config| config.host(network.host(index)))
    }

    /// Starts a server with the configuration that `configure` returns.
    #[track_caller]
    pub fn with(configure: impl FnOnce(Config) -> Config) -> Self {
        let config = configure(Config::default());
        for _ in 0..MAX_ATTEMPTS {
            let server = Self::launch(config.clone());
            match server.wait_until_ready() {
                Ok(()) => return server,
                Err(_) if server.log().contains("Address already in use") => {}
                Err(why) => panic!("{why}\n{}", server.log()),
            }
        }
        panic!("no port stays free for {MAX_ATTEMPTS} attempts");
    }

    fn launch(config: Config) -> Self {
        let folder = Folder::create();
        let port = Port::reserve();
        let bus = config.is_cluster.then(Port::reserve);
        if config.has_tls() {
            Certificates::new(folder.path()).write();
        }
        let file = config.file(folder.path(), port.number(), bus.as_ref().map(Port::number));
        folder.write(CONFIG, file);
        let server = Self { config, process: Mutex::default(), port, bus, folder };
        server.spawn();
        server
    }

    /// Starts the process with the existing configuration file, which a replica or a sentinel may have
    /// rewritten.
    #[track_caller]
    fn spawn(&self) {
        let program = program::redis_server().unwrap_or_else(|missing| panic!("{missing}"));
        let file = self.path(CONFIG);
        let mut command = Vec::new();
        if let Some(host) = &self.config.host {
            command.extend(["ip", "netns", "exec", &host.namespace].map(OsStr::new));
        }
        command.extend([program.as_os_str(), file.as_os_str()]);
        if self.config.is_sentinel {
            command.push(OsStr::new("--sentinel"));
        }
        let guard = ChildGuard::start(&command, &self.path(LOG), self.folder.path());
        *self.process() = Process { guard: Some(guard), is_paused: false };
    }

    fn wait_until_ready(&self) -> Result<(), &'static str> {
        let ready = wait::until(|| match self.try_command(&["PING"]) {
            Ok(Reply::Simple(_)) => Some(Ok(())),
            // The server replies with an error while it loads; before it listens, connections fail.
            _ => (!self.is_running()).then_some(Err("the server exited; its log:")),
        });
        ready.unwrap_or(Err("the server does not respond; its log:"))
    }

    /// `redis://127.0.0.1:PORT`, or `rediss://localhost:PORT` with TLS, and the password of
    /// [`Config::password`].
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// Like [`url`](Self::url), for a different user.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        self.url_with(&format!("{user}:{password}@"), self.port())
    }

    /// The URL with the port of a proxy.
    pub(crate) fn url_at(&self, port: u16) -> String {
        self.url_with(&self.config.login(), port)
    }

    fn url_with(&self, login: &str, port: u16) -> String {
        // The certificate names `localhost`.
        let (scheme, host) = match self.config.has_tls() {
            true => ("rediss", "localhost"),
            false => ("redis", self.config.address()),
        };
        format!("{scheme}://{login}{host}:{port}")
    }

    /// The port; it does not change when the server restarts.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The port of the cluster bus.
    pub(crate) fn bus(&self) -> u16 {
        self.bus.as_ref().expect("a node of a cluster").number()
    }

    /// `127.0.0.1:PORT`, or the address in a [`Network`](crate::Network).
    pub fn address(&self) -> String {
        format!("{}:{}", self.host(), self.port())
    }

    pub(crate) fn host(&self) -> &str {
        self.config.address()
    }

    /// The path of the Unix socket; every server has one.
    pub fn unix_path(&self) -> PathBuf {
        self.path(SOCKET)
    }

    /// The certificate of the authority that signed the server's certificate, as PEM.
    pub fn ca_path(&self) -> PathBuf {
        Certificates::new(self.folder()).ca()
    }

    /// A client certificate that the server accepts, as PEM.
    pub fn client_cert_path(&self) -> PathBuf {
        Certificates::new(self.folder()).client_certificate()
    }

    /// The key of that certificate, as PEM.
    pub fn client_key_path(&self) -> PathBuf {
        Certificates::new(self.folder()).client_key()
    }

    /// The folder with the server's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process id.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.process().guard.as_ref().map(ChildGuard::pid).expect("the server was killed")
    }

    /// Whether the process exists, paused or not.
    pub fn is_running(&self) -> bool {
        self.process().guard.as_mut().is_some_and(ChildGuard::is_running)
    }

    /// Whether the process exists and is not paused.
    pub fn is_serving(&self) -> bool {
        self.is_running() && !self.process().is_paused
    }

    /// The server's log.
    pub fn log(&self) -> String {
        read_log(&self.path(LOG))
    }

    /// Opens a connection over the Unix socket, with all permissions.
    #[track_caller]
    pub fn connect(&self) -> Connection {
        self.try_connect().unwrap_or_else(|error| panic!("no connection: {error}\n{}", self.log()))
    }

    /// Sends one command over a new connection. An error reply is a [`Reply`].
    #[track_caller]
    pub fn command<Arg: AsRef<[u8]>>(&self, args: &[Arg]) -> Reply {
        self.try_command(args).unwrap_or_else(|error| {
            let name = args.first().expect("a command has a name");
            let name = String::from_utf8_lossy(name.as_ref());
            panic!("no reply to {name}: {error}\n{}", self.log())
        })
    }

    pub(crate) fn try_command<Arg: AsRef<[u8]>>(&self, args: &[Arg]) -> io::Result<Reply> {
        self.try_connect()?.command(args)
    }

    fn try_connect(&self) -> io::Result<Connection> {
        let mut connection = Connection::to_unix(&self.unix_path())?;
        if self.config.needs_login() {
            connection.command(&["AUTH", CONTROL_USER, ""])?;
        }
        Ok(connection)
    }

    /// Stops the process (`SIGSTOP`): connections stay open without replies.
    #[track_caller]
    pub fn pause(&self) {
        let pid = self.pid();
        let mut process = self.process();
        process.guard.as_mut().expect("the server was killed").signal("STOP");
        process.is_paused = true;
        // The signal is asynchronous. Only Linux reports when the process has stopped.
        let stat = format!("/proc/{pid}/stat");
        wait::until(|| match fs::read_to_string(&stat) {
            Ok(stat) => stat.contains(") T ").then_some(()),
            Err(_) => Some(()),
        })
        .expect("a paused process stops");
    }

    /// Continues a paused process.
    #[track_caller]
    pub fn resume(&self) {
        let mut process = self.process();
        process.guard.as_mut().expect("the server was killed").signal("CONT");
        process.is_paused = false;
    }

    /// Kills the process (`SIGKILL`) and waits for its end. Does nothing if it has ended.
    pub fn kill(&self) {
        *self.process() = Process::default();
    }

    /// Kills the process if it runs, and starts it again at the same port and folder. Data is lost
    /// without `appendonly yes`.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        self.spawn();
        if let Err(why) = self.wait_until_ready() {
            panic!("{why}\n{}", self.log());
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        // A test that has panicked still cleans up.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a log file.
pub(crate) fn read_log(path: &Path) -> String {
    match fs::read(path) {
        Ok(log) => String::from_utf8_lossy(&log).into_owned(),
        Err(error) => format!("cannot read {}: {error}", path.display()),
    }
}

const CONFIG: &str = "server.conf";
const LOG: &str = "log";
