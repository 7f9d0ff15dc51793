//! One server.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::{CONTROL, SOCKET};
use crate::folder::Folder;
use crate::guard::Guard;
use crate::port::Port;
use crate::tls::Certificates;
use crate::{Config, Connection, Reply, program, wait};

/// A Redis or Valkey server of its own, killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    config: Config,
    process: Mutex<Process>,
    port: Port,
    /// Of the cluster's bus.
    bus: Option<Port>,
    // Last, so that the process is gone when its folder goes.
    folder: Folder,
}

/// The process while there is one.
#[derive(Debug, Default)]
struct Process {
    guard: Option<Guard>,
    is_paused: bool,
}

/// How often another port is tried where somebody took one that was free a moment ago.
const ATTEMPTS: usize = 5;

impl Server {
    /// Starts a plain server without persistence. It takes some 20 ms.
    ///
    /// # Panics
    ///
    /// If there is no server to start, or it does not answer in time. The message says what to type,
    /// or shows its log.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(|config| config)
    }

    /// Starts a server that is set up by `configure`.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn with(configure: impl FnOnce(Config) -> Config) -> Self {
        let config = configure(Config::default());
        for _ in 0..ATTEMPTS {
            let server = Self::launch(config.clone());
            match server.wait_until_ready() {
                Ok(()) => return server,
                Err(_) if server.log().contains("Address already in use") => {}
                Err(why) => panic!("{why}\n{}", server.log()),
            }
        }
        panic!("no port stays free for {ATTEMPTS} attempts");
    }

    fn launch(config: Config) -> Self {
        let folder = Folder::create();
        let port = Port::reserve();
        let bus = config.is_cluster.then(Port::reserve);
        if config.has_tls() {
            Certificates::new(folder.path()).write();
        }
        let file = config.file(folder.path(), port.number(), bus.as_ref().map(Port::number));
        fs::write(folder.path().join(CONFIG), file).expect("the configuration is written");
        let server = Self { config, process: Mutex::default(), port, bus, folder };
        server.spawn();
        server
    }

    /// Starts the process with the file as it is: a replica or a sentinel may have rewritten it.
    #[track_caller]
    fn spawn(&self) {
        let program = program::find().unwrap_or_else(|missing| panic!("{missing}"));
        let file = self.path(CONFIG);
        let mut command = vec![program.as_os_str(), file.as_os_str()];
        if self.config.is_sentinel {
            command.push(OsStr::new("--sentinel"));
        }
        let guard = Guard::start(&command, &self.path(LOG), self.folder.path());
        *self.process() = Process { guard: Some(guard), is_paused: false };
    }

    fn wait_until_ready(&self) -> Result<(), &'static str> {
        let ready = wait::until(|| match self.try_command(&["PING"]) {
            Ok(Reply::Simple(_)) => Some(Ok(())),
            // While it loads it answers an error, before it listens nothing.
            _ => (!self.is_running()).then_some(Err("the server has ended at once; its log:")),
        });
        ready.unwrap_or(Err("the server does not answer; its log:"))
    }

    /// `redis://127.0.0.1:PORT`, or `rediss://localhost:PORT` with TLS; with the password of
    /// [`Config::password`] if there is one.
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// [`url`](Self::url) as another user.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        self.url_with(&format!("{user}:{password}@"), self.port())
    }

    /// The URL at another port, which leads here too.
    pub(crate) fn url_at(&self, port: u16) -> String {
        self.url_with(&self.config.login(), port)
    }

    fn url_with(&self, login: &str, port: u16) -> String {
        // A certificate is made out to a name rather than to an address.
        let (scheme, host) =
            if self.config.has_tls() { ("rediss", "localhost") } else { ("redis", "127.0.0.1") };
        format!("{scheme}://{login}{host}:{port}")
    }

    /// The port, which stays the same over a restart.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The port of the cluster's bus, zero outside of one.
    pub(crate) fn bus(&self) -> u16 {
        self.bus.as_ref().map(Port::number).unwrap_or_default()
    }

    /// What stands before the host in a URL.
    pub(crate) fn login(&self) -> String {
        self.config.login()
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The path of its Unix socket, which is always there.
    pub fn unix_path(&self) -> PathBuf {
        self.path(SOCKET)
    }

    /// The certificate of the authority that vouches for a server with TLS, as PEM.
    pub fn ca_path(&self) -> PathBuf {
        Certificates::new(self.folder()).ca()
    }

    /// A certificate that a server with TLS takes from its clients, as PEM.
    pub fn client_cert_path(&self) -> PathBuf {
        Certificates::new(self.folder()).client_certificate()
    }

    /// The key of that certificate, as PEM.
    pub fn client_key_path(&self) -> PathBuf {
        Certificates::new(self.folder()).client_key()
    }

    /// Its folder, where its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The id of its process.
    ///
    /// # Panics
    ///
    /// If it was killed.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.process().guard.as_ref().map(Guard::server).expect("the server was killed")
    }

    /// Whether its process lives, paused or not.
    pub fn is_running(&self) -> bool {
        self.process().guard.as_mut().is_some_and(Guard::is_running)
    }

    /// Whether it lives and is not paused.
    pub fn is_serving(&self) -> bool {
        self.is_running() && !self.process().is_paused
    }

    /// Everything that it has written about itself.
    pub fn log(&self) -> String {
        let log = fs::read(self.path(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// A connection of its own, over the Unix socket and with every right.
    ///
    /// # Panics
    ///
    /// If the server does not serve.
    #[track_caller]
    pub fn connect(&self) -> Connection {
        self.try_connect().unwrap_or_else(|error| panic!("no connection: {error}\n{}", self.log()))
    }

    /// Sends one command over a connection of its own.
    ///
    /// # Panics
    ///
    /// If the server does not answer. An error that it answers is a [`Reply`].
    #[track_caller]
    pub fn command<Word: AsRef<[u8]>>(&self, words: &[Word]) -> Reply {
        self.try_command(words).unwrap_or_else(|error| {
            let name = words.first().map(|word| String::from_utf8_lossy(word.as_ref()));
            panic!("{} is not answered: {error}\n{}", name.unwrap_or_default(), self.log())
        })
    }

    pub(crate) fn try_command<Word: AsRef<[u8]>>(&self, words: &[Word]) -> io::Result<Reply> {
        self.try_connect()?.command(words)
    }

    fn try_connect(&self) -> io::Result<Connection> {
        let mut connection = Connection::to_unix(&self.unix_path())?;
        if self.config.needs_login() {
            connection.command(&["AUTH", CONTROL, ""])?;
        }
        Ok(connection)
    }

    /// Stops its process (`SIGSTOP`): connections stay open and nothing is answered.
    ///
    /// # Panics
    ///
    /// If it was killed.
    #[track_caller]
    pub fn pause(&self) {
        let pid = self.pid();
        let mut process = self.process();
        process.guard.as_mut().expect("the server was killed").signal("STOP");
        process.is_paused = true;
        // The signal is sent, but has not always arrived. Only Linux tells when it has.
        let stat = format!("/proc/{pid}/stat");
        wait::until(|| match fs::read_to_string(&stat) {
            Ok(stat) => stat.contains(") T ").then_some(()),
            Err(_) => Some(()),
        })
        .expect("a paused process stops");
    }

    /// Lets a paused process go on.
    ///
    /// # Panics
    ///
    /// If it was killed.
    #[track_caller]
    pub fn resume(&self) {
        let mut process = self.process();
        process.guard.as_mut().expect("the server was killed").signal("CONT");
        process.is_paused = false;
    }

    /// Kills its process (`SIGKILL`) and waits for its end; nothing if it has ended already.
    pub fn kill(&self) {
        *self.process() = Process::default();
    }

    /// Kills it if it runs, and starts it again with the same port and folder. What it knew is gone
    /// without [`Config::appendonly`].
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
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

const CONFIG: &str = "server.conf";
const LOG: &str = "log";
