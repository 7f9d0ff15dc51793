//! What a listener is for.

use hyper::Request;
use hyper::body::Incoming;

use crate::daemon::Daemon;
use crate::debug;
use crate::http::{self, Reply};
use crate::listener::Remote;
use crate::metrics;

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `/v1`, and whether it lives.
    Http,
    /// Envoy's rate limit service.
    Grpc,
    /// Clients of Redis.
    Resp,
    /// What is counted, and whether it lives, where nobody asks for decisions.
    Metrics,
    /// What is in force and what is counted, for people who debug.
    Debug,
}

impl Role {
    pub(crate) const ALL: [Role; 5] =
        [Role::Http, Role::Grpc, Role::Resp, Role::Metrics, Role::Debug];

    /// The word that stands for it in labels.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Role::Http => "http",
            Role::Grpc => "grpc",
            Role::Resp => "resp",
            Role::Metrics => "metrics",
            Role::Debug => "debug",
        }
    }

    pub(crate) async fn answer(
        self,
        daemon: &Daemon,
        remote: &Remote,
        request: Request<Incoming>,
    ) -> Reply {
        match self {
            // Clients of gRPC and of Redis are answered elsewhere, and never come here.
            Role::Http | Role::Grpc | Role::Resp => http::answer(daemon, remote, request).await,
            Role::Metrics => match http::probe(daemon, &request).await {
                Some(reply) => reply,
                None => metrics::answer(daemon, &request),
            },
            Role::Debug => debug::answer(daemon, &request),
        }
    }
}
