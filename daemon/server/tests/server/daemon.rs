//! A daemon to test.

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

use crate::client::{Answer, Client, request};

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

/// A daemon on a free port, whose decisions are made at a time that stands still.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    /// Where Envoy asks.
    pub(crate) grpc: SocketAddr,
    /// Where clients of Redis ask.
    pub(crate) resp: SocketAddr,
    /// Where its metrics are.
    pub(crate) scraped: SocketAddr,
    pub(crate) clock: ManualClock,
    stop: Option<oneshot::Sender<Stop>>,
    tell: Option<mpsc::Sender<()>>,
    reads: Arc<AtomicU64>,
    ended: JoinHandle<io::Result<()>>,
}

impl Daemon {
    /// With the policies of most tests.
    pub(crate) async fn start() -> Self {
        Daemon::start_with(POLICIES).await
    }

    pub(crate) async fn start_with(yaml: &str) -> Self {
        Daemon::start_of(Config::from_yaml(yaml).unwrap()).await
    }

    /// With the policies of most tests, and what else is set.
    pub(crate) async fn start_changed(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::from_yaml(POLICIES).unwrap();
        change(&mut config);
        Daemon::start_of(config).await
    }

    pub(crate) async fn start_of(config: Config) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        Daemon::run(config, limiter, clock).await
    }

    /// On the store that the file names, by that store's clock.
    pub(crate) async fn start_on_store(yaml: &str) -> Self {
        Daemon::start_of_store(Config::from_yaml(yaml).unwrap()).await
    }

    pub(crate) async fn start_of_store(config: Config) -> Self {
        let limiter = config.store.open(&config.namespace).await.unwrap();
        Daemon::run(config, limiter, ManualClock::default()).await
    }

    /// With the configuration of a file, which is watched closely.
    pub(crate) async fn start_from(path: &Path) -> Self {
        let config = Config::load(path).unwrap();
        let (tell, told) = mpsc::channel(1);
        let reads = Arc::new(AtomicU64::new(0));
        let (counted, file) = (Arc::clone(&reads), path.to_owned());
        let read = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Config::load(&file)
        };
        let reload = Reload::new(Some(path.to_owned()), read, told).every(Duration::from_millis(5));
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        let daemon = Daemon::run_with(config, limiter, clock, Some(reload), |x| x).await;
        Daemon { tell: Some(tell), reads, ..daemon }
    }

    /// With the configuration that `read` makes, which is made anew whenever that is told.
    pub(crate) async fn start_reading(
        read: impl Fn() -> Result<Config, ConfigErrors> + Send + Sync + 'static,
    ) -> Self {
        let config = read().unwrap();
        let (tell, told) = mpsc::channel(1);
        let reload = Reload::new(None, read, told);
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        let daemon = Daemon::run_with(config, limiter, clock, Some(reload), |x| x).await;
        Daemon { tell: Some(tell), ..daemon }
    }

    async fn run(config: Config, limiter: impl Into<Limiter>, clock: ManualClock) -> Self {
        Daemon::run_with(config, limiter, clock, None, |x| x).await
    }

    /// With a listener in the place of one over TCP.
    pub(crate) async fn start_at(yaml: &str, http: impl FnOnce(Listener) -> Listener) -> Self {
        let config = Config::from_yaml(yaml).unwrap();
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        let change =
            |listeners: Listeners| Listeners { http: listeners.http.map(http), ..listeners };
        Daemon::run_with(config, limiter, clock, None, change).await
    }

    /// With a listener in the place of the one of gRPC over TCP.
    pub(crate) async fn start_grpc_at(yaml: &str, grpc: impl FnOnce(Listener) -> Listener) -> Self {
        let config = Config::from_yaml(yaml).unwrap();
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let limiter = config.store.builder().clock(clock.clone()).build();
        let change =
            |listeners: Listeners| Listeners { grpc: listeners.grpc.map(grpc), ..listeners };
        Daemon::run_with(config, limiter, clock, None, change).await
    }

    async fn run_with(
        config: Config,
        limiter: impl Into<Limiter>,
        clock: ManualClock,
        reload: Option<Reload>,
        change: impl FnOnce(Listeners) -> Listeners,
    ) -> Self {
        let limiter = limiter.into();
        let (tcp, metrics) = (bind().await, bind().await);
        let (address, scraped) = (tcp.local_addr().unwrap(), metrics.local_addr().unwrap());
        let (over_grpc, over_resp) = (bind().await, bind().await);
        let (grpc, resp) = (over_grpc.local_addr().unwrap(), over_resp.local_addr().unwrap());
        let listeners = Listeners {
            http: Some(tcp.into()),
            grpc: Some(over_grpc.into()),
            resp: Some(over_resp.into()),
            metrics: Some(metrics.into()),
            ..Listeners::default()
        };
        let listeners = change(listeners);
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let ended = tokio::spawn(run(config, listeners, limiter, reload, stopped));
        let (stop, tell, reads) = (Some(stop), None, Arc::default());
        Daemon { address, grpc, resp, scraped, clock, stop, tell, reads, ended }
    }

    /// Tells it to read its configuration again, as SIGHUP does.
    pub(crate) async fn tell_to_reload(&self) {
        self.tell.as_ref().unwrap().send(()).await.unwrap();
    }

    /// How often it has read its configuration again.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Posts a body on a connection of its own.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.connect().await.post(path, body).await.unwrap()
    }

    /// Posts a body with a line of headers, on a connection of its own.
    pub(crate) async fn post_with(&self, path: &str, header: &str, body: &str) -> Answer {
        let line = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        let asked = request("POST", path, body).replacen("\r\n", &format!("\r\n{line}"), 1);
        let mut client = self.connect().await;
        client.send(&asked).await.unwrap();
        client.answer().await.unwrap()
    }

    /// Tells it to stop; [`Daemon::ended`] says when it has.
    pub(crate) fn stop(&mut self) {
        self.stop_as(Stop::WithoutDelay);
    }

    pub(crate) fn stop_as(&mut self, stop: Stop) {
        self.stop.take().unwrap().send(stop).unwrap();
    }

    pub(crate) async fn ended(self) {
        self.ended.await.unwrap().unwrap();
    }
}

async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}
