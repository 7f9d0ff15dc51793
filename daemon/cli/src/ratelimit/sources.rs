//! The source of the limits.

use std::path::PathBuf;

use tollgate_daemon::{Config, ConfigError, ConfigErrors, Layers, XdsOptions, has_no_domain_files};

use super::environment::Environment;
use super::xds;

const TYPES: &[&str] = &["FILE", "GRPC_XDS_SOTW"];
/// The variables that name the parts of the directory.
const DIRECTORY: &str = "RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY";

/// The source of the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// The directory of files; `None` with an xDS server.
    pub(super) directory: Option<PathBuf>,
    /// The variables of the directory that are set.
    pub(super) directory_variables: String,
    server: Option<XdsOptions>,
    merge_domains: bool,
    /// Whether a denied request charges nothing.
    is_atomic: bool,
    /// Whether the daemon starts even if there are no limits or they are invalid.
    pub(super) starts_without: bool,
}

impl Sources {
    pub(super) fn read(environment: &Environment) -> Self {
        let is_xds = environment.one_of("CONFIG_TYPE", TYPES) == Some("GRPC_XDS_SOTW");
        let directory = directory(environment);
        // Both values detect every change; reading it reports invalid values.
        environment.bool("RUNTIME_WATCH_ROOT");
        Sources {
            directory: Some(directory).filter(|_| !is_xds),
            directory_variables: directory_variables(environment),
            server: xds::read(environment, is_xds),
            is_atomic: environment.bool("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"),
            merge_domains: environment.bool("MERGE_DOMAIN_CONFIG"),
            starts_without: environment.bool("FORCE_START_WITHOUT_INITIAL_CONFIG"),
        }
    }

    /// The configuration with the limits of the files and otherwise defaults. An empty directory
    /// has no limits.
    pub(super) fn config(&self) -> Result<Config, ConfigErrors> {
        match &self.directory {
            Some(directory) if !directory.exists() => Err(ConfigError::new(format!(
                "{}: there is no directory {}; it is {DIRECTORY}, whose last part is \"config\" by default",
                self.directory_variables,
                directory.display()
            ))
            .into()),
            Some(directory) if !has_no_domain_files(directory) => {
                let files = directory.display().to_string();
                let layers = self.layers().flag(DIRECTORY, "envoy.config", &files);
                layers.partial().map(|partial| partial.config)
            }
            _ => self.without_limits(),
        }
    }

    /// The configuration without limits. The directory is still watched.
    pub(super) fn without_limits(&self) -> Result<Config, ConfigErrors> {
        let mut config = self.layers().partial()?.config;
        config.envoy.config.extend(self.directory.clone());
        config.envoy.xds.clone_from(&self.server);
        Ok(config)
    }

    /// The source in the greeting and the log.
    pub(super) fn description(&self) -> String {
        match (&self.directory, &self.server) {
            (Some(directory), _) => format!("from {}", directory.display()),
            (None, Some(xds)) => format!("from {}, by xDS", xds.server),
            (None, None) => "none".to_owned(),
        }
    }

    fn layers(&self) -> Layers {
        let merge = if self.merge_domains { "true" } else { "false" };
        let charging = if self.is_atomic { "atomic" } else { "reference" };
        Layers::new().flag("MERGE_DOMAIN_CONFIG", "envoy.merge_domains", merge).flag(
            "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
            "envoy.charging",
            charging,
        )
    }
}

/// The variables of the directory that are set, for messages.
fn directory_variables(environment: &Environment) -> String {
    let set = DIRECTORY.split('/').filter(|name| environment.is_set(name));
    let set: Vec<_> = set.collect();
    if set.is_empty() { "RUNTIME_ROOT".to_owned() } else { set.join("/") }
}

/// Joins the parts; leading slashes of later parts are removed.
fn directory(environment: &Environment) -> PathBuf {
    let mut directory = PathBuf::from(environment.text("RUNTIME_ROOT"));
    for name in ["RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY"] {
        directory.push(environment.text(name).trim_start_matches('/'));
    }
    directory
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tollgate_daemon::{Charging, FailureMode};

    use super::super::environment::tests::environment;
    use super::*;

    #[test]
    fn directory_joins_its_parts() {
        for (lines, directory) in [
            ("", Some("/srv/runtime_data/current/config")),
            ("RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit", Some("/data/ratelimit/config")),
            ("RUNTIME_ROOT=/d RUNTIME_SUBDIRECTORY=/r RUNTIME_APPDIRECTORY=", Some("/d/r")),
            ("CONFIG_TYPE=GRPC_XDS_SOTW", None),
        ] {
            let environment = environment(lines);
            let sources = Sources::read(&environment);
            assert_eq!(sources.directory.as_deref(), directory.map(Path::new), "{lines}");
            assert!(environment.errors().is_empty(), "{lines}");
        }
    }

    #[test]
    fn charging_and_failures_equal_the_original_by_default() {
        for (lines, charging) in [
            ("CONFIG_TYPE=GRPC_XDS_SOTW", Charging::Reference),
            (
                "CONFIG_TYPE=GRPC_XDS_SOTW STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=1",
                Charging::Atomic,
            ),
        ] {
            let config = Sources::read(&environment(lines)).config().unwrap();
            assert_eq!(config.envoy.charging, charging);
            assert_eq!(config.envoy.on_store_error, FailureMode::Error);
            assert_eq!(config.envoy.xds.unwrap().server, "localhost:18000");
        }
    }

    #[test]
    fn unknown_source_is_an_error() {
        let environment = environment("CONFIG_TYPE=ETCD");
        Sources::read(&environment);
        let error = &environment.errors()[0];
        assert_eq!(error, "CONFIG_TYPE is \"ETCD\"; write one of FILE, GRPC_XDS_SOTW");
    }
}
