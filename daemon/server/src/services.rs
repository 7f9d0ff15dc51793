//! The state that all connections share: the engine, and the state of each protocol.

use std::sync::Arc;

use tokio::sync::watch;
use tollgate::Limiter;
use tollgate_admin::Admin;
use tollgate_config::{Config, domain_file_warnings};
use tollgate_engine::{ActiveConfig, Engine, ListenerKind, PerListener, StoreStatus};

use tollgate_envoy::EnvoyState;
use tollgate_http::HttpState;
use tollgate_resp::RespState;
use tollgate_transport::{BufferBudget, ConnectionLimiter, Lifecycle};

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) engine: Arc<Engine>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    /// The connections of each listener. Each is limited on its own, so that a listener responds
    /// while another one is full.
    pub(crate) connections: PerListener<Arc<ConnectionLimiter>>,
    /// The buffers of all connections together.
    pub(crate) buffers: Arc<BufferBudget>,
    /// Why the last reload was rejected, if it was.
    pub(crate) reload_error: watch::Sender<Option<Arc<str>>>,
    /// What is doubtful in the files of the active configuration.
    pub(crate) config_warnings: watch::Sender<Vec<String>>,
    pub(crate) http: HttpState,
    pub(crate) envoy: Arc<EnvoyState>,
    pub(crate) resp: RespState,
    pub(crate) admin: Arc<Admin>,
}

impl Services {
    pub(crate) fn new(active: ActiveConfig, limiter: Limiter) -> Self {
        let connections: PerListener<Arc<ConnectionLimiter>> = PerListener::default();
        let buffers: Arc<BufferBudget> = Arc::default();
        let resp_connections = Arc::clone(connections.get(ListenerKind::Resp));
        let resp = RespState::new(resp_connections, Arc::clone(&buffers));
        let engine = Arc::new(Engine::new(active, limiter));
        let lifecycle: Arc<Lifecycle> = Arc::default();
        let (reload_error, config_warnings) = (watch::Sender::default(), watch::Sender::default());
        let admin = Admin::new(
            Arc::clone(&engine),
            Arc::clone(&lifecycle),
            reload_error.subscribe(),
            config_warnings.subscribe(),
        );
        let services = Services {
            engine,
            lifecycle,
            connections,
            buffers,
            reload_error,
            config_warnings,
            http: HttpState::default(),
            envoy: Arc::default(),
            resp,
            admin: Arc::new(admin),
        };
        services.update_health();
        services
    }

    /// Logs that another service answers, and what is doubtful in the files of the active configuration,
    /// which is also kept for the readiness page and the dashboard.
    pub(crate) fn report_warnings(&self, config: &Config) {
        if let Some(options) = &config.envoy.compare {
            let service = options.uri.to_string();
            tracing::warn!(service, "gRPC calls get the answers of the compared service");
        }
        // A control plane replaces the files.
        let paths = match config.envoy.xds {
            Some(_) => &[][..],
            None => &config.envoy.config,
        };
        let warnings = domain_file_warnings(paths);
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        self.config_warnings.send_replace(warnings);
    }

    /// Tells health checks to send no more requests.
    pub(crate) fn drain(&self) {
        self.lifecycle.drain();
        self.update_health();
    }

    /// Updates health checks after a change of the store, the configuration or the lifecycle.
    pub(crate) fn update_health(&self) {
        self.lifecycle.set_healthy(self.is_healthy());
    }

    fn is_healthy(&self) -> bool {
        if self.lifecycle.is_draining() {
            return false;
        }
        let active = self.engine.active();
        let has_limits = self.envoy.discovery.check_limits().is_ok();
        let Some(health) = &active.envoy.compat.health else { return has_limits };
        let has_store = match self.engine.store_status() {
            StoreStatus::Reachable => true,
            StoreStatus::Lost => !health.needs_store,
            StoreStatus::NeverReached => false,
        };
        has_store
            && (has_limits || health.starts_without_limits)
            && (!health.needs_domains || !active.domains.is_empty())
    }
}
