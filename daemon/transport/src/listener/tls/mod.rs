//! TLS: the certificate of the daemon, client certificates, and reloading both.

mod certificate;
mod files;
mod settings;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use self::certificate::Lifetime;
use self::files::{CERT, Contents};
use tollgate_config::{FileProblem, TlsConfig};
use tollgate_engine::ClientCertificate;

/// How often the files are polled.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The number of polls in a day: a certificate that expires soon is reported once a day.
const POLLS_PER_DAY: u32 = 43_200;

/// The certificate and key of listeners. Clones share them.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: TlsConfig,
    loaded: ArcSwap<Loaded>,
    /// The error of the last poll, which is logged only once.
    last_error: Mutex<Option<FileProblem>>,
}

/// The state that new connections use.
#[derive(Debug)]
struct Loaded {
    contents: Contents,
    settings: Arc<ServerConfig>,
    lifetime: Lifetime,
}

impl Loaded {
    fn new(files: &TlsConfig, contents: Contents) -> Result<Loaded, FileProblem> {
        let chain = contents.chain(files)?;
        let lifetime = certificate::lifetime(&chain)
            .map_err(|error| FileProblem::new(CERT, &files.cert, error))?;
        let settings = settings::build(files, &contents, chain)?;
        Ok(Loaded { contents, settings: Arc::new(settings), lifetime })
    }

    fn warn(&self, files: &TlsConfig) {
        if let Some(warning) = self.lifetime.warning() {
            tracing::warn!("{}", FileProblem::new(CERT, &files.cert, warning));
        }
    }
}

impl Tls {
    /// Reads the files, blocking. Logs a certificate that has expired or expires soon.
    ///
    /// # Errors
    /// A file cannot be read or used; the error names it and the remedy.
    pub fn open(files: TlsConfig) -> Result<Tls, FileProblem> {
        let loaded = Loaded::new(&files, Contents::read(&files)?)?;
        loaded.warn(&files);
        let loaded = ArcSwap::from_pointee(loaded);
        Ok(Tls(Arc::new(Shared { files, loaded, last_error: Mutex::new(None) })))
    }

    /// Returns every problem of the files. Reads them, blocking.
    pub fn problems(files: &TlsConfig) -> Vec<FileProblem> {
        let unreadable = Contents::read_problems(files);
        if !unreadable.is_empty() {
            return unreadable;
        }
        // The files are checked against each other, so only the first error is meaningful.
        let loaded = Contents::read(files).and_then(|contents| Loaded::new(files, contents));
        loaded.err().into_iter().collect()
    }

    /// Reads the files again, blocking. New connections use the new contents; open connections are
    /// not affected. Returns whether anything changed.
    ///
    /// # Errors
    /// The files cannot be used; the previous contents stay in use.
    pub fn reload(&self) -> Result<bool, FileProblem> {
        let Shared { files, loaded, .. } = &*self.0;
        let contents = Contents::read(files)?;
        if contents == loaded.load().contents {
            return Ok(false);
        }
        let new = Loaded::new(files, contents)?;
        new.warn(files);
        loaded.store(Arc::new(new));
        Ok(true)
    }

    /// Pointer equality; does not compare the files.
    pub(super) fn ptr_eq(&self, other: &Tls) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Polls the files; never returns.
    pub async fn watch(self) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut polls: u32 = 0;
        loop {
            ticks.tick().await;
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(POLLS_PER_DAY) {
                self.0.loaded.load().warn(&self.0.files);
            }
            let tls = self.clone();
            match spawn_blocking(move || tls.reload()).await {
                Ok(result) => self.log(result),
                Err(error) => tracing::error!("reading the listen.tls files failed: {error}"),
            }
        }
    }

    /// Logs the result of a poll, an error only once. While only one of the two files is replaced,
    /// certificate and key do not match.
    fn log(&self, result: Result<bool, FileProblem>) {
        let mut last_error = self.0.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(changed) => {
                if changed {
                    tracing::info!("certificate reloaded");
                } else if last_error.is_some() {
                    tracing::info!("the listen.tls files match the certificate in use again");
                }
                *last_error = None;
            }
            Err(error) => {
                if last_error.as_ref() != Some(&error) {
                    tracing::error!("{error}; keeping the previous certificate");
                }
                *last_error = Some(error);
            }
        }
    }

    /// Performs the handshake. Returns the stream and the client certificate.
    pub async fn accept<S>(
        &self,
        stream: S,
    ) -> io::Result<(TlsStream<S>, Option<ClientCertificate>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let settings = Arc::clone(&self.0.loaded.load().settings);
        let stream = TlsAcceptor::from(settings).accept(stream).await?;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let certificate = certificate.and_then(certificate::client);
        Ok((stream, certificate))
    }
}
