//! What the environment says, as a daemon.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tollgate_server::{Config, ConfigErrors, Listeners, LogFormat, Tls};

use super::environment::Environment;
use super::greeting::Greeting;
use super::serving::Listening;
use super::sources::Sources;
use super::{answers, serving, store, tracing};
use crate::serve::{Daemon, Ready, Tracing, bind_at, running};

/// What the environment says.
#[derive(Debug)]
pub(super) struct Mode {
    environment: Environment,
    sources: Sources,
    listening: Listening,
    tracing: Tracing,
}

impl Mode {
    /// Reads all of it.
    ///
    /// # Errors
    /// Some variables say what cannot be; all of them are named.
    pub(super) fn read(environment: Environment) -> Result<Self> {
        let sources = Sources::read(&environment);
        let listening = lay(&environment, &mut Config::default());
        let tracing = tracing::read(&environment);
        let wrong: Vec<_> = environment.wrong().iter().map(ToString::to_string).collect();
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\nerror: "));
        }
        Ok(Mode { environment, sources, listening, tracing })
    }

    /// Runs the daemon to its end.
    pub(super) fn run(self) -> Result<ExitCode> {
        let (config, refusal) = self.first_config()?;
        let log = config.log.clone();
        running(&log, &self.tracing.clone(), async |logs| {
            self.tell(refusal.as_ref());
            let Mode { environment, sources, listening, .. } = self;
            let tls = listening.tls.clone().map(Tls::open).transpose();
            let tls = tls.context("a file of GRPC_SERVER_TLS_… or GRPC_CLIENT_TLS_… is wrong")?;
            let listeners = bind(&config, &listening, tls).await?;
            let limits = sources.place();
            let read = Box::new(move || config_of(&sources, &environment));
            let is_json = log.format == LogFormat::Json;
            let daemon = Daemon { config, listeners, file: None, read };
            let greet = |ready: Ready<'_>| match is_json {
                // Whoever reads lines as JSON is told by such lines only.
                true => {
                    ::tracing::info!(limits, "ready");
                    Ok(String::new())
                }
                false => Greeting::of(&ready, &limits).map(|x| x.to_string()),
            };
            daemon.run(logs, greet).await
        })
    }

    /// The configuration to begin with, and why the limits of the files are not in it, if they are
    /// not and need not be.
    fn first_config(&self) -> Result<(Config, Option<ConfigErrors>)> {
        match config_of(&self.sources, &self.environment) {
            Ok(value) => Ok((value, None)),
            Err(refusal) if self.sources.starts_without => {
                let mut config = self.sources.without_limits()?;
                lay(&self.environment, &mut config);
                Ok((config, Some(refusal)))
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Tells what somebody may not expect.
    fn tell(&self, refusal: Option<&ConfigErrors>) {
        for (name, why) in self.environment.ignored() {
            ::tracing::warn!("{name} is ignored: {why}");
        }
        if self.tracing != Tracing::Off && !cfg!(feature = "otlp") {
            ::tracing::warn!(
                "TRACING_ENABLED is ignored: this program is built without the feature otlp"
            );
        }
        if let Some(refusal) = refusal {
            ::tracing::error!("it starts without limits: {refusal}");
        }
    }
}

fn config_of(sources: &Sources, environment: &Environment) -> Result<Config, ConfigErrors> {
    let mut config = sources.config()?;
    lay(environment, &mut config);
    Ok(config)
}

/// Lays all over a configuration that the environment says beside where limits come from.
fn lay(environment: &Environment, config: &mut Config) -> Listening {
    let listening = serving::read(environment, config);
    store::read(environment, config);
    answers::read(environment, config);
    listening
}

/// Binds all that is listened at. TLS is spoken for gRPC alone.
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
    use super::super::variables::{Fate, all};
    use super::*;

    #[test]
    fn every_variable_that_is_said_to_be_honoured_is_read_and_no_other() {
        let mode = Mode::read(environment("BACKEND_TYPE=memory")).unwrap();
        let read = mode.environment.asked.lock().unwrap().clone();
        let said = all().filter(|x| matches!(x.fate, Fate::Honoured(_)));
        let said: BTreeSet<_> = said.map(|x| x.name).collect();
        assert_eq!(read, said);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let error = Mode::read(environment("PORT=x GRPC_PORT=y")).unwrap_err().to_string();
        for name in ["PORT is \"x\"", "GRPC_PORT is \"y\"", "REDIS_URL is not set"] {
            assert!(error.contains(name), "{error}");
        }
    }
}
