//! Kinds of listeners.

/// The kind of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// The JSON API, forward auth and probes.
    Http,
    /// Envoy's rate limit service.
    Grpc,
    /// Redis clients.
    Resp,
    /// The metrics page and probes.
    Metrics,
    /// The effective configuration and statistics, for debugging.
    Debug,
}

impl ListenerKind {
    /// Every kind, in the order of labels on the metrics page.
    pub const ALL: [ListenerKind; 5] = [
        ListenerKind::Http,
        ListenerKind::Grpc,
        ListenerKind::Resp,
        ListenerKind::Metrics,
        ListenerKind::Debug,
    ];

    /// The value of the label `listener`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ListenerKind::Http => "http",
            ListenerKind::Grpc => "grpc",
            ListenerKind::Resp => "resp",
            ListenerKind::Metrics => "metrics",
            ListenerKind::Debug => "debug",
        }
    }
}

/// One value for each kind of listener.
#[derive(Debug, Default)]
pub struct PerListener<T>([T; ListenerKind::ALL.len()]);

impl<T> PerListener<T> {
    /// The value of one kind.
    pub fn get(&self, kind: ListenerKind) -> &T {
        let [http, grpc, resp, metrics, debug] = &self.0;
        match kind {
            ListenerKind::Http => http,
            ListenerKind::Grpc => grpc,
            ListenerKind::Resp => resp,
            ListenerKind::Metrics => metrics,
            ListenerKind::Debug => debug,
        }
    }
}
