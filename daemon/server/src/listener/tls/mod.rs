//! TLS: what is shown to peers, what they must show, and new files in the place of old ones.

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
use crate::config::TlsConfig;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// After how many looks it is said again that the certificate ends soon: once a day.
const LOOKS_OF_A_DAY: u32 = 43_200;

/// The certificate and key of listeners. Clones share them.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: TlsConfig,
    loaded: ArcSwap<Loaded>,
    /// Why the files as they are now cannot be used, if so; it is said once.
    refused: Mutex<Option<TlsError>>,
}

/// What connections are begun with.
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
    /// Reads the files; blocks while it does. A certificate that has ended, or soon does, is
    /// logged.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it should be; the error names it and what to do.
    pub fn open(files: TlsConfig) -> Result<Tls, TlsError> {
        let loaded = Loaded::of(&files, Contents::read(&files)?)?;
        loaded.warn(&files);
        let loaded = ArcSwap::from_pointee(loaded);
        Ok(Tls(Arc::new(Shared { files, loaded, refused: Mutex::new(None) })))
    }

    /// All that is wrong with the files; blocks while it reads them.
    pub(crate) fn mistakes(files: &TlsConfig) -> Vec<TlsError> {
        let unread = Contents::unread(files);
        if !unread.is_empty() {
            return unread;
        }
        // What is in one is held against what is in another, so the first mistake ends it.
        let loaded = Contents::read(files).and_then(|x| Loaded::of(files, x));
        loaded.err().into_iter().collect()
    }

    /// Reads the files again if they have changed; blocks while it does. Connections from then on
    /// are begun with what is in them, and those that there are live on. Whether anything changed.
    ///
    /// # Errors
    /// They cannot be used, so those from before still are.
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

    /// Whether it is the same.
    pub(super) fn is(&self, other: &Tls) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether peers must show a certificate.
    #[must_use]
    pub fn asks_for_certificates(&self) -> bool {
        self.0.files.client_ca.is_some()
    }

    /// Looks at the files now and then, for ever.
    pub(crate) async fn watch(self) {
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
                Err(error) => tracing::error!("the files of listen.tls are not read: {error}"),
            }
        }
    }

    /// Logs what became of a look. While one file is new and the other not yet, they do not fit;
    /// what is refused is told once.
    fn tell(&self, looked: Result<bool, TlsError>) {
        let mut refused = self.0.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match looked {
            Ok(changed) => {
                if changed {
                    tracing::info!("new connections are shown the new certificate");
                } else if refused.is_some() {
                    tracing::info!("the files of listen.tls are those from before again");
                }
                *refused = None;
            }
            Err(error) => {
                if refused.as_ref() != Some(&error) {
                    tracing::error!("{error}; the certificate from before is shown still");
                }
                *refused = Some(error);
            }
        }
    }

    /// Agrees with a peer; the stream, and whom the peer's certificate names.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, Option<Arc<str>>)>
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
