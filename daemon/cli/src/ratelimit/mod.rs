//! `tollgate ratelimit`: a replacement for envoyproxy/ratelimit, configured by its environment
//! variables.

mod decisions;
mod environment;
mod listing;
mod serving;
mod sources;
mod store;
mod value;
mod variables;
mod xds;

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use tollgate_daemon::{
    CompareOptions, Config, ConfigError, ConfigErrors, Listeners, LogFormat, Operators, Tls,
};

use crate::arguments::{Ratelimit, RatelimitOperators};
use crate::output::{self, counted, memory_bounds};
use crate::serve::{Daemon, Ready, Tracing, bind_at, run_async};
use environment::Environment;
use serving::Listening;
use sources::Sources;

pub(crate) fn run(arguments: &Ratelimit) -> Result<ExitCode> {
    if arguments.variables {
        output::print(&listing::text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment = Environment::from_vars(std::env::vars_os());
    Replacement::read(environment, Api::new(arguments)?)?.run()
}

/// Whether the log is JSON.
pub(crate) fn logs_json() -> bool {
    std::env::var_os("LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json"))
}

/// What is served beside the interfaces of envoyproxy/ratelimit.
#[derive(Clone, Debug, Default)]
struct Api {
    compare: Option<CompareOptions>,
    has_json: bool,
    operators: Operators,
}

impl Api {
    fn new(arguments: &Ratelimit) -> Result<Self> {
        let compare = arguments.compare.as_deref().map(CompareOptions::new).transpose();
        Ok(Api {
            compare: compare.map_err(|error| anyhow!("--compare: {error}"))?,
            has_json: arguments.json_api || arguments.operators.is_some(),
            operators: match arguments.operators {
                None => Operators::Tokens,
                Some(RatelimitOperators::Loopback) => Operators::Loopback,
            },
        })
    }

    fn apply(&self, config: &mut Config) {
        config.envoy.compare.clone_from(&self.compare);
        config.envoy.compat.hides_api = !self.has_json;
        config.operators = self.operators;
    }
}

/// The configuration from the environment.
#[derive(Debug)]
struct Replacement {
    api: Api,
    environment: Environment,
    sources: Sources,
    listening: Listening,
    tracing: Tracing,
}

impl Replacement {
    /// Reads all variables.
    ///
    /// # Errors
    /// Some variables are invalid; the message lists all of them.
    fn read(environment: Environment, api: Api) -> Result<Self> {
        let sources = Sources::read(&environment);
        let listening = apply(&environment, &mut Config::default());
        let tracing = serving::read_tracing(&environment);
        let errors = environment.errors();
        if !errors.is_empty() {
            let misspelt = environment.misspelt().map(|message| format!("\nwarning: {message}"));
            bail!("{}{}", errors.join("\nerror: "), misspelt.collect::<String>());
        }
        Ok(Replacement { api, environment, sources, listening, tracing })
    }

    /// Runs the daemon until it stops.
    fn run(self) -> Result<ExitCode> {
        let (config, error) = self.initial_config()?;
        let log = config.log.clone();
        run_async(&log, &self.tracing.clone(), async |logs| {
            self.warn(error.as_ref());
            let Replacement { api, environment, sources, listening, .. } = self;
            let tls = listening.tls.clone().map(Tls::open).transpose();
            let tls = tls.map_err(|error| anyhow!(with_variables(error.to_string())))?;
            let listeners = bind(&config, &listening, tls).await?;
            let limits = sources.description();
            let directory = sources.directory_variables.clone();
            let read = Box::new(move || read_config(&sources, &environment, &api));
            let is_json = log.format == LogFormat::Json;
            let daemon = Daemon { config, listeners, file: None, read };
            let greet = |ready: Ready<'_>| match is_json {
                // Readers of a JSON log expect no other lines.
                true => {
                    tracing::info!(limits, "ready");
                    Ok(String::new())
                }
                false => greeting(&ready, &limits),
            };
            let result = daemon.run(logs, greet).await;
            result.map_err(|error| match error.downcast::<ConfigError>() {
                Ok(error) => in_variable(&error, &directory).into(),
                Err(error) => error,
            })
        })
    }

    /// The initial configuration. If it may start without limits, errors in the limits are returned
    /// beside it.
    fn initial_config(&self) -> Result<(Config, Option<ConfigErrors>)> {
        match read_config(&self.sources, &self.environment, &self.api) {
            Ok(config) => Ok((config, None)),
            Err(errors) if self.sources.starts_without => {
                let mut config = self.sources.without_limits()?;
                apply(&self.environment, &mut config);
                self.api.apply(&mut config);
                Ok((config, Some(errors)))
            }
            Err(errors) => Err(errors.into()),
        }
    }

    /// Logs what differs from expectations.
    fn warn(&self, errors: Option<&ConfigErrors>) {
        for (name, reason) in self.environment.ignored() {
            tracing::warn!("{name} is ignored: {reason}");
        }
        for message in self.environment.misspelt() {
            tracing::warn!("{message}");
        }
        if self.tracing != Tracing::Off && !cfg!(feature = "otlp") {
            tracing::warn!(
                "TRACING_ENABLED is ignored: this binary was built without the feature otlp"
            );
        }
        if self.api.operators == Operators::Loopback {
            tracing::warn!(
                "--operators loopback: every program on this machine may block and reset keys, and \
                 so may the clients of a proxy that adds no header"
            );
        }
        if let Some(errors) = errors {
            tracing::error!("starting without limits: {errors}");
        }
    }
}

/// The text that is printed when the daemon is ready: listeners, store and source of the limits.
fn greeting(ready: &Ready<'_>, limits: &str) -> Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("tollgate {version} is ready, replacing envoyproxy/ratelimit\n\n");
    let mut line = |name: &str, value: &str| text += &format!("  {name:16}  {value}\n");
    let listeners = ready.listeners;
    for (name, listener, about) in [
        ("gRPC for Envoy", &listeners.grpc, ""),
        ("HTTP", &listeners.http, ", /json and /healthcheck"),
        ("debug", &listeners.debug, ", /rlconfig, /stats and /metrics"),
        ("metrics", &listeners.metrics, ""),
    ] {
        match listener {
            Some(listener) => line(name, &format!("{}{about}", listener.address()?)),
            None => line(name, "off"),
        }
    }
    let store = &ready.config.store;
    let description = if store.url.is_memory() {
        format!("memory, {}, for one replica", memory_bounds(ready.config))
    } else {
        format!("{}, namespace {}", store.url, ready.config.namespace)
    };
    line("store", &description);
    if let Some(error) = &ready.store_error {
        line("", &format!("unavailable: {error}"));
    }
    let domains = &ready.config.domains;
    let counts = format!(
        "{} with {}, ",
        counted(domains.domains().count(), "domain", "domains"),
        counted(domains.rule_count(), "limit", "limits")
    );
    // Those of a control plane come later.
    let counts = if ready.config.envoy.xds.is_some() { String::new() } else { counts };
    line("limits", &format!("{counts}{limits}"));
    Ok(text)
}

fn read_config(
    sources: &Sources,
    environment: &Environment,
    api: &Api,
) -> Result<Config, ConfigErrors> {
    let config = sources.config();
    let mut config =
        config.map_err(|errors| in_variables(&errors, &sources.directory_variables))?;
    apply(environment, &mut config);
    api.apply(&mut config);
    Ok(config)
}

/// The errors, which name variables instead of fields.
fn in_variables(errors: &ConfigErrors, directory: &str) -> ConfigErrors {
    let errors = errors.iter().map(|error| in_variable(error, directory).message().to_owned());
    ConfigError::new(errors.collect::<Vec<_>>().join("\n")).into()
}

/// The error, which names a variable instead of a field. `directory` names the variables of the
/// directory of limits.
fn in_variable(error: &ConfigError, directory: &str) -> ConfigError {
    let field = error.field().unwrap_or_default();
    let variable = match field {
        "store" | "store.url" => "REDIS_URL",
        "store.ca" => "REDIS_TLS_CACERT",
        "store.cert" => "REDIS_TLS_CLIENT_CERT",
        "store.key" => "REDIS_TLS_CLIENT_KEY",
        "store.deadline" | "store.connect_timeout" => "REDIS_TIMEOUT",
        field if field.starts_with("envoy.config") => directory,
        _ => return error.clone(),
    };
    ConfigError::new(format!("{variable}: {}", error.message()))
}

/// The message of an error in the files for TLS, which names variables instead of fields.
fn with_variables(message: String) -> String {
    let fields = [
        ("listen.tls.client_ca", "GRPC_CLIENT_TLS_CACERT"),
        ("listen.tls.cert", "GRPC_SERVER_TLS_CERT"),
        ("listen.tls.key", "GRPC_SERVER_TLS_KEY"),
    ];
    fields.iter().fold(message, |message, (field, variable)| message.replace(field, variable))
}

/// Applies all variables except those for the source of limits.
fn apply(environment: &Environment, config: &mut Config) -> Listening {
    let listening = serving::read(environment, config);
    store::read(environment, config);
    decisions::read(environment, config);
    listening
}

/// Binds all listeners. TLS applies to gRPC only.
async fn bind(config: &Config, listening: &Listening, tls: Option<Tls>) -> Result<Listeners> {
    let listen = &config.listen;
    let addresses = [&listen.http, &listen.grpc, &listen.metrics, &listening.debug];
    let http = bind_at(&listen.http, "HOST and PORT", &addresses).await?;
    let grpc = bind_at(&listen.grpc, "GRPC_HOST and GRPC_PORT, or GRPC_UDS", &addresses).await?;
    let grpc = grpc.map(|grpc| grpc.with_tls(tls));
    let metrics = bind_at(&listen.metrics, "PROMETHEUS_ADDR", &addresses).await?;
    let debug = bind_at(&listening.debug, "DEBUG_HOST and DEBUG_PORT", &addresses).await?;
    Ok(Listeners { http, grpc, metrics, debug, ..Listeners::default() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::environment::tests::environment;
    use super::variables::all;
    use super::*;

    #[test]
    fn every_variable_of_the_table_is_read() {
        let replacement =
            Replacement::read(environment("BACKEND_TYPE=memory"), Api::default()).unwrap();
        let read = replacement.environment.requested.lock().unwrap().clone();
        let documented: BTreeSet<_> = all().map(|variable| variable.name).collect();
        assert_eq!(read, documented);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let error = Replacement::read(environment("PORT=x GRPC_PORT=y"), Api::default());
        let error = error.unwrap_err().to_string();
        for name in ["PORT is \"x\"", "GRPC_PORT is \"y\"", "REDIS_URL is not set"] {
            assert!(error.contains(name), "{error}");
        }
    }
}
