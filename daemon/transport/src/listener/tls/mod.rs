//! TLS: the certificate of the daemon, client certificates, and reloading both.

mod certificate;
mod client_name;
mod error;
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
pub use self::error::TlsError;
use self::files::Contents;
use tollgate_config::TlsConfig;

/// How often the files are polled.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The number of polls in a day: a certificate that expires soon is reported once a day.
const LOOKS_OF_A_DAY: u32 = 43_200;

/// The certificate and key of listeners. Clones share them.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: TlsConfig,
    loaded: ArcSwap<Loaded>,
    /// The last error that was logged, so that it is logged only once.
    refused: Mutex<Option<TlsError>>,
}

/// The state that new connections use.
#[derive(Debug)]
struct Loaded {
    contents: Contents,
    settings: Arc<ServerConfig>,
    lifetime: Lifetime,
}

impl Loaded {
    fn of(files: &TlsConfig, contents: Contents) -> Result<Loaded, TlsError> {
        let chain = contents.chain(files)?;
        let lifetime =
            certificate::lifetime(&chain).map_err(|error| TlsError::cert(files, error))?;
        let settings = settings::of(files, &contents, chain)?;
        Ok(Loaded { contents, settings: Arc::new(settings), lifetime })
    }

    fn warn(&self, files: &TlsConfig) {
        if let Some(warning) = self.lifetime.warning() {
            tracing::warn!("listen.tls.cert: {}: {warning}", files.cert.display());
        }
    }
}

impl Tls {
    /// Reads the files, blocking. Logs a certificate that has expired or expires soon.
    ///
    /// # Errors
    /// A file cannot be read or used; the error names it and what to do.
    pub fn open(files: TlsConfig) -> Result<Tls, TlsError> {
        let loaded = Loaded::of(&files, Contents::read(&files)?)?;
        loaded.warn(&files);
        let loaded = ArcSwap::from_pointee(loaded);
        Ok(Tls(Arc::new(Shared { files, loaded, refused: Mutex::new(None) })))
    }

    /// Returns every error in the files. Reads them, blocking.
    pub fn mistakes(files: &TlsConfig) -> Vec<TlsError> {
        let unread = Contents::unread(files);
        if !unread.is_empty() {
            return unread;
        }
        // The files are checked against each other, so only the first error is meaningful.
        let loaded = Contents::read(files).and_then(|x| Loaded::of(files, x));
        loaded.err().into_iter().collect()
    }

    /// Reads the files again, blocking. New connections use the new contents; open connections are
    /// not affected. Returns whether anything changed.
    ///
    /// # Errors
    /// The files cannot be used; the previous contents stay in use.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let Shared { files, loaded, .. } = &*self.0;
        let contents = Contents::read(files)?;
        if contents == loaded.load().contents {
            return Ok(false);
        }
        let new = Loaded::of(files, contents)?;
        new.warn(files);
        loaded.store(Arc::new(new));
        Ok(true)
    }

    /// Pointer equality; does not compare the files.
    pub(super) fn is(&self, other: &Tls) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether clients must present a certificate.
    #[must_use]
    pub fn asks_for_certificates(&self) -> bool {
        self.0.files.client_ca.is_some()
    }

    /// Polls the files; never returns.
    pub async fn watch(self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks: u32 = 0;
        loop {
            ticks.tick().await;
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_OF_A_DAY) {
                self.0.loaded.load().warn(&self.0.files);
            }
            let tls = self.clone();
            match spawn_blocking(move || tls.reload()).await {
                Ok(looked) => self.tell(looked),
                Err(error) => tracing::error!("reading the listen.tls files failed: {error}"),
            }
        }
    }

    /// Logs the result of a poll, an error only once. While only one of the two files is replaced,
    /// certificate and key do not match.
    fn tell(&self, looked: Result<bool, TlsError>) {
        let mut refused = self.0.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match looked {
            Ok(changed) => {
                if changed {
                    tracing::info!("certificate reloaded");
                } else if refused.is_some() {
                    tracing::info!("the listen.tls files match the certificate in use again");
                }
                *refused = None;
            }
            Err(error) => {
                if refused.as_ref() != Some(&error) {
                    tracing::error!("{error}; keeping the previous certificate");
                }
                *refused = Some(error);
            }
        }
    }

    /// Performs the handshake. Returns the stream and the subject of the client certificate.
    pub async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, Option<Arc<str>>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let settings = Arc::clone(&self.0.loaded.load().settings);
        let stream = TlsAcceptor::from(settings).accept(stream).await?;
        let (_, session) = stream.get_ref();
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let subject = shown.and_then(certificate::subject);
        Ok((stream, subject))
    }
}
