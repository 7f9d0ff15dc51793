//! Where the limits come from.

use std::path::PathBuf;

use tollgate_server::{Config, ConfigErrors, Layers, XdsOptions, has_no_domain_files};

use super::environment::Environment;
use super::xds;

const TYPES: &[&str] = &["FILE", "GRPC_XDS_SOTW"];
/// What names the directory of files, for whoever is told that something is wrong there.
const DIRECTORY: &str = "RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY";

/// Where the limits come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// The directory of files; nothing where a server says what the limits are.
    pub(super) directory: Option<PathBuf>,
    server: Option<XdsOptions>,
    merge_domains: bool,
    /// Whether denied requests are charged nothing.
    is_atomic: bool,
    /// Whether it starts though there are no limits yet, or they are refused.
    pub(super) starts_without: bool,
}

impl Sources {
    pub(super) fn read(environment: &Environment) -> Self {
        let is_xds = environment.word("CONFIG_TYPE", TYPES) == Some("GRPC_XDS_SOTW");
        let directory = directory(environment);
        // Changes are found whatever is watched.
        environment.truth("RUNTIME_WATCH_ROOT");
        Sources {
            directory: Some(directory).filter(|_| !is_xds),
            server: xds::read(environment, is_xds),
            is_atomic: environment.truth("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"),
            merge_domains: environment.truth("MERGE_DOMAIN_CONFIG"),
            starts_without: environment.truth("FORCE_START_WITHOUT_INITIAL_CONFIG"),
        }
    }

    /// The configuration with the limits of the files, and nothing else of it said. A directory
    /// without a file is one without a limit.
    pub(super) fn config(&self) -> Result<Config, ConfigErrors> {
        match &self.directory {
            Some(directory) if !has_no_domain_files(directory) => {
                let files = directory.display().to_string();
                let layers = self.layers().flag(DIRECTORY, "envoy.config", &files);
                layers.partial().map(|partial| partial.config)
            }
            _ => self.without_limits(),
        }
    }

    /// The same while there are no limits that could hold. The directory is looked at still.
    pub(super) fn without_limits(&self) -> Result<Config, ConfigErrors> {
        let mut config = self.layers().partial()?.config;
        config.envoy.config.extend(self.directory.clone());
        config.envoy.xds.clone_from(&self.server);
        Ok(config)
    }

    /// Where they come from, for people.
    pub(super) fn place(&self) -> String {
        match (&self.directory, &self.server) {
            (Some(directory), _) => format!("of {}", directory.display()),
            (None, Some(xds)) => format!("of {}, by xDS", xds.server),
            (None, None) => "none".to_owned(),
        }
    }

    fn layers(&self) -> Layers {
        let merge = if self.merge_domains { "true" } else { "false" };
        let charging = if self.is_atomic { "atomic" } else { "reference" };
        Layers::new()
            .flag("MERGE_DOMAIN_CONFIG", "envoy.merge_domains", merge)
            .flag("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "envoy.charging", charging)
            // The reference answers an error then, and Envoy's `failure_mode_deny` is set for that.
            .flag("ratelimit", "envoy.on_store_error", "error")
    }
}

/// The parts, which are joined whatever they begin with.
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

    use tollgate_server::{Charging, RuleOnStoreError};

    use super::super::environment::tests::environment;
    use super::*;

    #[test]
    fn the_directory_is_joined_of_its_parts() {
        for (lines, directory) in [
            ("", Some("/srv/runtime_data/current/config")),
            ("RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit", Some("/data/ratelimit/config")),
            ("RUNTIME_ROOT=/d RUNTIME_SUBDIRECTORY=/r RUNTIME_APPDIRECTORY=", Some("/d/r")),
            ("CONFIG_TYPE=GRPC_XDS_SOTW", None),
        ] {
            let environment = environment(lines);
            let sources = Sources::read(&environment);
            assert_eq!(sources.directory.as_deref(), directory.map(Path::new), "{lines}");
            assert!(environment.wrong().is_empty(), "{lines}");
        }
    }

    #[test]
    fn charges_and_failures_are_as_the_reference_has_them_unless_told_otherwise() {
        for (lines, charging) in [
            ("CONFIG_TYPE=GRPC_XDS_SOTW", Charging::Reference),
            (
                "CONFIG_TYPE=GRPC_XDS_SOTW STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=1",
                Charging::Atomic,
            ),
        ] {
            let config = Sources::read(&environment(lines)).config().unwrap();
            assert_eq!(config.envoy.charging, charging);
            assert_eq!(config.envoy.on_store_error, RuleOnStoreError::Error);
            assert_eq!(config.envoy.xds.unwrap().server, "localhost:18000");
        }
    }

    #[test]
    fn another_source_is_refused() {
        let environment = environment("CONFIG_TYPE=ETCD");
        Sources::read(&environment);
        let wrong = environment.wrong()[0].to_string();
        assert_eq!(wrong, "CONFIG_TYPE is \"ETCD\"; write one of FILE, GRPC_XDS_SOTW");
    }
}
