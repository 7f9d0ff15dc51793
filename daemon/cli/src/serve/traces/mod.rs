//! Exports decisions as OpenTelemetry spans to a collector.
//!
//! A thread of the SDK exports them in batches, so that no decision waits for the collector. Spans
//! that do not fit into its queue are dropped.

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
use self::spans::Spans;
use super::logs::EventLayer;
use super::runtime::{Service, Tracing};

/// The time limit for exporting the last spans when the daemon stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The exporter, if tracing is enabled.
#[derive(Debug)]
pub(super) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Starts the exporter if it is enabled, and returns the layer that feeds it.
    pub(super) fn start(runtime: &Handle, tracing: &Tracing) -> Result<(Self, Option<EventLayer>)> {
        let Some(timeout) = timeout(tracing)? else { return Ok((Traces(None), None)) };
        let client = Client::new(runtime.clone(), timeout);
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let exporter = exporter.context("cannot export traces")?;
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        let provider = match tracing {
            Tracing::As(service) => provider
                .with_resource(service_resource(service))
                .with_sampler(sampler(service.sampled_millionths)),
            _ => provider.with_resource(resource()),
        };
        let provider = provider.build();
        let spans = Spans::new(provider.tracer("tollgate"));
        Ok((Traces(Some(provider)), Some(spans.layer())))
    }

    /// Exports the remaining spans within a time limit. The runtime does the export, so this must
    /// not be called on it.
    pub(super) fn stop(self) {
        let Some(provider) = self.0 else { return };
        if let Err(error) = provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT) {
            tracing::warn!("cannot export the last spans: {error}");
        }
    }
}

/// The time limit of an export, if tracing is enabled.
fn timeout(tracing: &Tracing) -> Result<Option<Duration>> {
    let variable = |name: &str| std::env::var(name).ok();
    match tracing {
        Tracing::Off => Ok(None),
        Tracing::FromEnvironment => environment::read(variable),
        // Tracing is enabled; the other variables of OpenTelemetry still apply.
        Tracing::As(_) => environment::read(|name| match (name, variable(name)) {
            ("OTEL_TRACES_EXPORTER", None) => Some("otlp".to_owned()),
            (_, value) => value,
        }),
    }
}

fn service_resource(service: &Service) -> Resource {
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

/// Follows the decision of the caller, otherwise samples this share.
fn sampler(millionths: u64) -> Sampler {
    let share = Duration::from_micros(millionths).as_secs_f64();
    Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share)))
}

/// The service of the environment variables, by default `tollgate`.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let builder = || Resource::builder().with_attribute(version.clone());
    let resource = builder().build();
    let name = resource.get(&Key::from_static_str("service.name"));
    // The SDK's name for a service without a name.
    if name.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        return resource;
    }
    builder().with_service_name("tollgate").build()
}
