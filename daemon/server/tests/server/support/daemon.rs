//! A daemon for tests.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tollgate::{Limiter, ManualClock, Timestamp};
use tollgate_server::{Config, ConfigErrors, Listener, Listeners, Reload, Stop, run};

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
  listed: { limits: ["1/min log"], allow: ["root"], deny: ["eve", "bot-*"] }
"#;

/// A daemon on free ports. With the memory store, its clock moves only when the test advances it.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// The address of the HTTP listener.
    pub(crate) address: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) metrics: SocketAddr,
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

    /// Starts with [`POLICIES`] and other options.
    pub(crate) async fn start_with_options(set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::from_yaml(POLICIES).unwrap();
        set(&mut config);
        Daemon::start_with_config(config).await
    }

    pub(crate) async fn start_with_config(config: Config) -> Self {
        Daemon::start_in_memory(config, None, |listeners| listeners).await
    }

    /// Starts on the configured store, with the clock of that store.
    pub(crate) async fn start_on_store(yaml: &str) -> Self {
        Daemon::start_config_on_store(Config::from_yaml(yaml).unwrap()).await
    }

    pub(crate) async fn start_config_on_store(config: Config) -> Self {
        let limiter = config.store.open(&config.namespace).await.unwrap();
        Daemon::run(config, limiter, ManualClock::default(), None, |listeners| listeners).await
    }

    /// Starts with the configuration in a file, and polls the file at a short interval.
    pub(crate) async fn start_from_file(path: &Path) -> Self {
        let reads = Arc::new(AtomicU64::new(0));
        let (counter, file) = (Arc::clone(&reads), path.to_owned());
        let read = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Config::load(&file)
        };
        let config = Config::load(path).unwrap();
        let (reload, messages) = mpsc::channel(1);
        let options = Reload::new(Some(path.to_owned()), read, messages);
        let options = options.every(Duration::from_millis(5));
        let daemon = Daemon::start_in_memory(config, Some(options), |listeners| listeners).await;
        Daemon { reload: Some(reload), reads, ..daemon }
    }

    /// Starts with the configuration that `read` returns; [`Daemon::reload`] calls `read` again.
    pub(crate) async fn start_with_reader(
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
    ) -> Self {
        let config = read().unwrap();
        let (reload, messages) = mpsc::channel(1);
        let options = Reload::new(None, read, messages);
        let daemon = Daemon::start_in_memory(config, Some(options), |listeners| listeners).await;
        Daemon { reload: Some(reload), ..daemon }
    }

    /// Starts with a replaced HTTP listener.
    pub(crate) async fn start_with_http_listener(
        yaml: &str,
        replace: impl FnOnce(Listener) -> Listener,
    ) -> Self {
        let config = Config::from_yaml(yaml).unwrap();
        let replace = |all: Listeners| Listeners { http: all.http.map(replace), ..all };
        Daemon::start_in_memory(config, None, replace).await
    }

    /// Starts with a replaced gRPC listener.
    pub(crate) async fn start_with_grpc_listener(
        yaml: &str,
        replace: impl FnOnce(Listener) -> Listener,
    ) -> Self {
        let config = Config::from_yaml(yaml).unwrap();
        let replace = |all: Listeners| Listeners { grpc: all.grpc.map(replace), ..all };
        Daemon::start_in_memory(config, None, replace).await
    }

    async fn start_in_memory(
        config: Config,
        reload: Option<Reload>,
        replace: impl FnOnce(Listeners) -> Listeners,
    ) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        Daemon::run(config, limiter, clock, reload, replace).await
    }

    async fn run(
        config: Config,
        limiter: impl Into<Limiter>,
        clock: ManualClock,
        reload: Option<Reload>,
        replace: impl FnOnce(Listeners) -> Listeners,
    ) -> Self {
        let (http, address) = bind().await;
        let (grpc_listener, grpc) = bind().await;
        let (resp_listener, resp) = bind().await;
        let (metrics_listener, metrics) = bind().await;
        let listeners = replace(Listeners {
            http: Some(http),
            grpc: Some(grpc_listener),
            resp: Some(resp_listener),
            metrics: Some(metrics_listener),
            ..Listeners::default()
        });
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let server = tokio::spawn(run(config, listeners, limiter.into(), reload, stopped));
        let (stop, reload, reads) = (Some(stop), None, Arc::default());
        Daemon { address, grpc, resp, metrics, clock, stop, reload, reads, server }
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

async fn bind() -> (Listener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}
