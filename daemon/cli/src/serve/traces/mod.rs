//! Decisions as spans of OpenTelemetry, sent to a collector.
//!
//! A thread of the SDK sends them in batches, so that no decision waits for the collector; what
//! does not fit its queue is lost.

mod client;
mod environment;
mod spans;

use std::time::Duration;

use anyhow::{Context, Result};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;

use self::client::Client;
use self::environment::Environment;
use self::spans::Spans;
use super::logs::Listener;
use super::running::{Service, Tracing};

/// How long the last spans may take to be sent when the daemon stops.
const LAST: Duration = Duration::from_secs(3);

/// What is sent, while it is.
#[derive(Debug)]
pub(super) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// As the environment says; with what hears the decisions, if they are to be sent.
    pub(super) fn start(runtime: &Handle, tracing: &Tracing) -> Result<(Self, Option<Listener>)> {
        let Some(Environment { timeout }) = environment(tracing)? else {
            return Ok((Traces(None), None));
        };
        let client = Client::new(runtime.clone(), timeout);
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let exporter = exporter.context("traces cannot be sent")?;
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        let provider = match tracing {
            Tracing::As(service) => provider
                .with_resource(resource_of(service))
                .with_sampler(sampler(service.sampled_millionths)),
            _ => provider.with_resource(resource()),
        };
        let provider = provider.build();
        let spans = Spans::new(provider.tracer("tollgate"));
        Ok((Traces(Some(provider)), Some(spans.listener())))
    }

    /// Sends what is left, but does not wait for it without end. Not to be called on the runtime,
    /// which is what sends.
    pub(super) fn stop(self) {
        let Some(provider) = self.0 else { return };
        if let Err(error) = provider.shutdown_with_timeout(LAST) {
            tracing::warn!("the last traces are not sent: {error}");
        }
    }
}

fn environment(tracing: &Tracing) -> Result<Option<Environment>> {
    let variable = |name: &str| std::env::var(name).ok();
    match tracing {
        Tracing::Off => Ok(None),
        Tracing::OfEnvironment => Environment::read(variable),
        // That they are to be sent was said; where to, and how, is said as ever.
        Tracing::As(_) => Environment::read(|name| match (name, variable(name)) {
            ("OTEL_TRACES_EXPORTER", None) => Some("otlp".to_owned()),
            (_, said) => said,
        }),
    }
}

fn resource_of(service: &Service) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let more =
        [("service.namespace", &service.namespace), ("service.instance.id", &service.instance)];
    let more =
        more.into_iter().filter_map(|(name, value)| Some(KeyValue::new(name, value.clone()?)));
    Resource::builder()
        .with_attributes(more.chain([version]))
        .with_service_name(service.name.clone())
        .build()
}

/// As whoever began the trace has decided, and else of this share.
fn sampler(millionths: u64) -> Sampler {
    let share = Duration::from_micros(millionths).as_secs_f64();
    Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share)))
}

/// What the environment says of the service, which otherwise is called `tollgate`.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let told = || Resource::builder().with_attribute(version.clone());
    let resource = told().build();
    let name = resource.get(&Key::from_static_str("service.name"));
    // What the SDK calls a service that nobody named.
    if name.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        return resource;
    }
    told().with_service_name("tollgate").build()
}
