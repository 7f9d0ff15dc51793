//! A daemon for tests.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tollgate::{Limiter, ManualClock, Timestamp};
use tollgate_daemon::{
    Config, ConfigErrors, Listener, Listeners, Operators, Reload, Stop, Tls, run,
};
use tollgate_testkit::Server;

use super::client::{Client, Response};

/// The policies of most tests.
pub(crate) const POLICIES: &str = r#"
policies:
  bucket: { limits: ["2/s"] }
  log: { limits: ["2/min log"] }
  pair: { limits: ["3/h fixed", "2/min fixed"] }
  queue: { limits: ["1/s queue 2"] }
  slots: { limits: ["2 concurrent lease 60s"] }
  ghost: { limits: ["1/min log"], shadow: true }
  tracked: { limits: ["2/s"], track: { recent: 5, usage: true, timeline: 1h by 1m } }
  listed: { limits: ["1/min log"], allow: ["root"], deny: ["eve", "bot-*"] }
  login: { limits: ["1/min log"], ban: { denials: 2, within: 10min, for: 1h } }
"#;

/// A daemon on free ports, of which every test is an operator. With the memory store, its clock
/// moves only when the test advances it.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// The address of the HTTP listener.
    pub(crate) address: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) clock: ManualClock,
    stop: Option<oneshot::Sender<Stop>>,
    reload: Option<mpsc::Sender<()>>,
    reads: Arc<AtomicU64>,
    server: JoinHandle<io::Result<()>>,
}

impl Daemon {
    /// Starts with [`POLICIES`].
    pub(crate) async fn start() -> Self {
        Daemon::start_with(POLICIES).await
    }

    pub(crate) async fn start_with(yaml: &str) -> Self {
        Daemon::start_with_config(Config::from_yaml(yaml).unwrap()).await
    }

    /// Starts with [`POLICIES`] and these fields of `limits`.
    pub(crate) async fn start_with_limits(limits: &str) -> Self {
        Daemon::start_with(&format!("limits: {{ {limits} }}\n{POLICIES}")).await
    }

    /// Starts with [`POLICIES`] and other options.
    pub(crate) async fn start_with_options(set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::from_yaml(POLICIES).unwrap();
        set(&mut config);
        Daemon::start_with_config(config).await
    }

    pub(crate) async fn start_with_config(config: Config) -> Self {
        Daemon::start_unchanged(with_local_operators(config)).await
    }

    /// Starts without making the test an operator.
    pub(crate) async fn start_unchanged(config: Config) -> Self {
        Daemon::start_in_memory(config, None, |_| {}).await
    }

    /// Starts on a server, with a deadline that is long enough for a busy machine.
    pub(crate) async fn start_on(server: &Server, yaml: &str) -> Self {
        let store = format!("store: {{ url: \"{}\", deadline: 5s }}", server.url());
        Daemon::start_on_store(Config::from_yaml(&format!("{store}\n{yaml}")).unwrap()).await
    }

    /// Starts on the configured store, with the clock of that store.
    pub(crate) async fn start_on_store(config: Config) -> Self {
        let limiter = config.store.open(&config.namespace).await.unwrap();
        let config = with_local_operators(config);
        Daemon::run(config, limiter, ManualClock::default(), None, |_| {}).await
    }

    /// Starts with the configuration in a file, and polls the file at a short interval.
    pub(crate) async fn start_from_file(path: &Path) -> Self {
        let file = path.to_owned();
        Daemon::start_reloading(Some(path.to_owned()), move || Config::load(&file)).await
    }

    /// Starts with the configuration that `read` returns; [`Daemon::reload`] calls `read` again.
    pub(crate) async fn start_with_reader(
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
    ) -> Self {
        Daemon::start_reloading(None, read).await
    }

    /// Starts on the store of the configuration that `read` returns; [`Daemon::reload`] calls `read`
    /// again.
    pub(crate) async fn start_on_store_with_reader(
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
    ) -> Self {
        let read = move || read().map(with_local_operators);
        let config = read().unwrap();
        let limiter = config.store.open(&config.namespace).await.unwrap();
        let (reload, messages) = mpsc::channel(1);
        let options = Reload::new(None, read, messages).every(Duration::from_millis(5));
        let clock = ManualClock::default();
        let daemon = Daemon::run(config, limiter, clock, Some(options), |_| {}).await;
        Daemon { reload: Some(reload), ..daemon }
    }

    async fn start_reloading(
        file: Option<PathBuf>,
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
    ) -> Self {
        let read = move || read().map(with_local_operators);
        let config = read().unwrap();
        let reads = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&reads);
        let read = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            read()
        };
        let (reload, messages) = mpsc::channel(1);
        let options = Reload::new(file, read, messages).every(Duration::from_millis(5));
        let daemon = Daemon::start_in_memory(config, Some(options), |_| {}).await;
        Daemon { reload: Some(reload), reads, ..daemon }
    }

    /// Starts with [`POLICIES`], these fields of `limits`, and TLS.
    pub(crate) async fn start_with_tls(tls: &Tls, limits: &str) -> Self {
        let config = Config::from_yaml(&format!("limits: {{ {limits} }}\n{POLICIES}")).unwrap();
        Daemon::start_unchanged_with_tls(with_local_operators(config), tls).await
    }

    /// Starts with TLS for all protocols, without making the test an operator.
    pub(crate) async fn start_unchanged_with_tls(config: Config, tls: &Tls) -> Self {
        let add_tls = |listeners: &mut Listeners| {
            for listener in [&mut listeners.http, &mut listeners.grpc, &mut listeners.resp] {
                *listener = listener.take().map(|listener| listener.with_tls(Some(tls.clone())));
            }
        };
        Daemon::start_in_memory(config, None, add_tls).await
    }

    /// Starts with other listeners, without making the test an operator.
    pub(crate) async fn start_unchanged_with(
        config: Config,
        change: impl FnOnce(&mut Listeners),
    ) -> Self {
        Daemon::start_in_memory(config, None, change).await
    }

    /// Starts with [`POLICIES`] and HTTP on a Unix socket, without making other clients operators.
    pub(crate) async fn start_on_unix(path: &Path) -> Self {
        let listener = Listener::bind_unix(path).await.unwrap();
        let config = Config::from_yaml(POLICIES).unwrap();
        Daemon::start_in_memory(config, None, |listeners| listeners.http = Some(listener)).await
    }

    async fn start_in_memory(
        config: Config,
        reload: Option<Reload>,
        change: impl FnOnce(&mut Listeners),
    ) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        Daemon::run(config, limiter, clock, reload, change).await
    }

    async fn run(
        config: Config,
        limiter: impl Into<Limiter>,
        clock: ManualClock,
        reload: Option<Reload>,
        change: impl FnOnce(&mut Listeners),
    ) -> Self {
        let (http, address) = bind().await;
        let (grpc_listener, grpc) = bind().await;
        let (resp_listener, resp) = bind().await;
        let (metrics_listener, metrics) = bind().await;
        let (admin_listener, admin) = bind().await;
        let mut listeners = Listeners {
            http: Some(http),
            grpc: Some(grpc_listener),
            resp: Some(resp_listener),
            metrics: Some(metrics_listener),
            admin: Some(admin_listener),
            ..Listeners::default()
        };
        change(&mut listeners);
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let server = tokio::spawn(run(config, listeners, limiter.into(), reload, stopped));
        let (stop, reload, reads) = (Some(stop), None, Arc::default());
        Daemon { address, grpc, resp, metrics, admin, clock, stop, reload, reads, server }
    }

    /// Requests a reload, as SIGHUP does.
    pub(crate) async fn reload(&self) {
        self.reload.as_ref().unwrap().send(()).await.unwrap();
    }

    /// How often a reload has read the configuration.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Opens a connection and sends a request, or the beginning of one.
    pub(crate) async fn send(&self, text: &str) -> Client {
        let mut client = self.connect().await;
        client.send(text).await.unwrap();
        client
    }

    /// Sends a POST request on a new connection.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Response {
        self.post_with(path, "", body).await
    }

    /// Sends a POST request with more header lines on a new connection.
    pub(crate) async fn post_with(&self, path: &str, headers: &str, body: &str) -> Response {
        self.connect().await.request_with("POST", path, headers, body).await.unwrap()
    }

    /// Starts to stop the daemon; [`Daemon::join`] waits for the end.
    pub(crate) fn stop(&mut self) {
        self.stop_with(Stop::WithoutDelay);
    }

    pub(crate) fn stop_with(&mut self, stop: Stop) {
        self.stop.take().unwrap().send(stop).unwrap();
    }

    pub(crate) async fn join(self) {
        self.server.await.unwrap().unwrap();
    }
}

/// Makes the clients on this machine operators.
fn with_local_operators(mut config: Config) -> Config {
    config.operators = Operators::Loopback;
    config
}

async fn bind() -> (Listener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}
