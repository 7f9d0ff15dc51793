//! The daemon as a replacement for envoyproxy/ratelimit.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tollgate_server::{Config, ConfigErrors, Listeners, LogFormat, Tls};

use super::environment::Environment;
use super::greeting::Greeting;
use super::serving::Listening;
use super::sources::Sources;
use super::{decisions, serving, store, tracing};
use crate::serve::{Daemon, Ready, Tracing, bind_at, run_async};

/// The configuration from the environment.
#[derive(Debug)]
pub(super) struct Replacement {
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
    pub(super) fn read(environment: Environment) -> Result<Self> {
        let sources = Sources::read(&environment);
        let listening = apply(&environment, &mut Config::default());
        let tracing = tracing::read(&environment);
        let errors: Vec<_> = environment.errors().iter().map(ToString::to_string).collect();
        if !errors.is_empty() {
            bail!("{}", errors.join("\nerror: "));
        }
        Ok(Replacement { environment, sources, listening, tracing })
    }

    /// Runs the daemon until it stops.
    pub(super) fn run(self) -> Result<ExitCode> {
        let (config, error) = self.initial_config()?;
        let log = config.log.clone();
        run_async(&log, &self.tracing.clone(), async |logs| {
            self.warn(error.as_ref());
            let Replacement { environment, sources, listening, .. } = self;
            let tls = listening.tls.clone().map(Tls::open).transpose();
            let tls = tls.context("invalid file in GRPC_SERVER_TLS_… or GRPC_CLIENT_TLS_…")?;
            let listeners = bind(&config, &listening, tls).await?;
            let limits = sources.description();
            let read = Box::new(move || read_config(&sources, &environment));
            let is_json = log.format == LogFormat::Json;
            let daemon = Daemon { config, listeners, file: None, read };
            let greet = |ready: Ready<'_>| match is_json {
                // A reader of JSON lines must not meet other lines.
                true => {
                    ::tracing::info!(limits, "ready");
                    Ok(String::new())
                }
                false => Greeting::new(&ready, &limits).map(|greeting| greeting.to_string()),
            };
            daemon.run(logs, greet).await
        })
    }

    /// The initial configuration. If it may start without limits, errors in the limits are returned
    /// beside it.
    fn initial_config(&self) -> Result<(Config, Option<ConfigErrors>)> {
        match read_config(&self.sources, &self.environment) {
            Ok(config) => Ok((config, None)),
            Err(errors) if self.sources.starts_without => {
                let mut config = self.sources.without_limits()?;
                apply(&self.environment, &mut config);
                Ok((config, Some(errors)))
            }
            Err(errors) => Err(errors.into()),
        }
    }

    /// Logs what differs from expectations.
    fn warn(&self, errors: Option<&ConfigErrors>) {
        for (name, reason) in self.environment.ignored() {
            ::tracing::warn!("{name} is ignored: {reason}");
        }
        if self.tracing != Tracing::Off && !cfg!(feature = "otlp") {
            ::tracing::warn!(
                "TRACING_ENABLED is ignored: this binary was built without the feature otlp"
            );
        }
        if let Some(errors) = errors {
            ::tracing::error!("starting without limits: {errors}");
        }
    }
}

fn read_config(sources: &Sources, environment: &Environment) -> Result<Config, ConfigErrors> {
    let mut config = sources.config()?;
    apply(environment, &mut config);
    Ok(config)
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
    let http = bind_at(&listen.http, "HOST and PORT").await?;
    let grpc = bind_at(&listen.grpc, "GRPC_HOST and GRPC_PORT, or GRPC_UDS").await?;
    let grpc = grpc.map(|grpc| grpc.with_tls(tls));
    let metrics = bind_at(&listen.metrics, "PROMETHEUS_ADDR").await?;
    let debug = bind_at(&listening.debug, "DEBUG_HOST and DEBUG_PORT").await?;
    Ok(Listeners { http, grpc, metrics, debug, resp: None })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::environment::tests::environment;
    use super::super::variables::all;
    use super::*;

    #[test]
    fn every_variable_of_the_table_is_read() {
        let replacement = Replacement::read(environment("BACKEND_TYPE=memory")).unwrap();
        let read = replacement.environment.requested.lock().unwrap().clone();
        let documented: BTreeSet<_> = all().map(|variable| variable.name).collect();
        assert_eq!(read, documented);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let error = Replacement::read(environment("PORT=x GRPC_PORT=y")).unwrap_err().to_string();
        for name in ["PORT is \"x\"", "GRPC_PORT is \"y\"", "REDIS_URL is not set"] {
            assert!(error.contains(name), "{error}");
        }
    }
}
