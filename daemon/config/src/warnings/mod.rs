//! Settings that are valid, and that a daemon in production should not have.

mod changes;
mod keys;
mod modes;

pub use changes::{logged_limits, unused_limits_of_rules};

use tollgate_document::{ConfigError, Origin};

use crate::layers::LoadedConfig;
use crate::named_files::find;
use crate::read::tokens::Operators;

impl LoadedConfig {
    /// The warnings about the configuration, each at the position of its field. The samples and an
    /// inline policy, which are for development, cause none.
    #[must_use]
    pub fn warnings(&self) -> Vec<ConfigError> {
        let mut warnings = Vec::new();
        let config = &self.config;
        if config.operators == Operators::Loopback && config.tokens.is_empty() {
            let message = "every program on this machine may operate, and so may the clients of a \
                           proxy that adds no header; configure tokens instead";
            warnings.extend(self.warning("operators", message));
        }
        warnings.extend(self.open_listeners());
        warnings.extend(self.unused_leases());
        warnings.extend(self.keys_without_braces());
        warnings.extend(self.unused_keys());
        warnings
    }

    /// The listeners that other machines reach, and that need neither a token nor a certificate.
    fn open_listeners(&self) -> Vec<ConfigError> {
        let listen = &self.config.listen;
        let has_client_ca = listen.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if has_client_ca || !self.config.tokens.is_empty() {
            return Vec::new();
        }
        let listeners = [
            ("listen.http", &listen.http),
            ("listen.grpc", &listen.grpc),
            ("listen.resp", &listen.resp),
        ];
        let exposed = listeners.into_iter().filter(|(_, address)| address.is_exposed());
        exposed
            .filter_map(|(field, address)| {
                let message = format!(
                    "every client that reaches {address} may check and read every key; configure \
                     tokens or listen.tls.client_ca, or use a loopback address or a Unix socket"
                );
                self.warning(field, &message)
            })
            .collect()
    }

    /// A warning about a field, unless the samples have set it.
    fn warning(&self, field: &str, message: &str) -> Option<ConfigError> {
        let entry = find(&self.tree, field)?;
        if entry.origin == Origin::Sample {
            return None;
        }
        Some(self.warning_at(field, message, &entry.origin))
    }

    fn warning_at(&self, field: &str, message: &str, origin: &Origin) -> ConfigError {
        let warning = ConfigError::new(message).with_field(field).with_origin(origin.clone());
        match self.file_name() {
            Some(file) => warning.in_file(file),
            None => warning,
        }
    }
}
