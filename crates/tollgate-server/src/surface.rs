//! What is spoken at a listener.

use hyper::Request;
use hyper::body::Incoming;

use crate::daemon::Daemon;
use crate::http::{self, Reply};
use crate::listener::Remote;

/// What is spoken at a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/v1`, and whether it lives.
    Http,
    /// Whether it lives, where nobody asks for decisions.
    Metrics,
}

impl Surface {
    pub(crate) async fn answer(
        self,
        daemon: &Daemon,
        remote: &Remote,
        request: Request<Incoming>,
    ) -> Reply {
        match self {
            Surface::Http => http::answer(daemon, remote, request).await,
            Surface::Metrics => http::answer_probe(daemon, &request).await,
        }
    }
}
