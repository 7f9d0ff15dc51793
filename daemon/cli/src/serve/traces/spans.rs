//! Decision events as spans.

use std::fmt;
use std::time::{Duration, SystemTime};

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use tollgate_daemon::DECISIONS;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{self, Layer};

use crate::serve::logs::EventLayer;

/// Creates a span for each decision event.
#[derive(Debug)]
pub(super) struct Spans {
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl Spans {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Spans { tracer, propagator: TraceContextPropagator::new() }
    }

    /// The layer, restricted to decision events.
    pub(super) fn layer(self) -> EventLayer {
        self.with_filter(filter_fn(|metadata| metadata.target() == DECISIONS)).boxed()
    }
}

impl<S: Subscriber> Layer<S> for Spans {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let mut fields = DecisionFields::default();
        event.record(&mut fields);
        // An empty context, so that no span has another thread's span as its parent.
        let parent = self.propagator.extract_with_context(&Context::new(), &fields);
        let begin = SystemTime::UNIX_EPOCH + Duration::from_micros(fields.since_us);
        let span = self
            .tracer
            .span_builder("decide")
            .with_kind(SpanKind::Server)
            .with_start_time(begin)
            .with_attributes(fields.attributes);
        let mut span = self.tracer.build_with_context(span, &parent);
        span.end_with_timestamp(begin + Duration::from_micros(fields.took_us));
    }
}

/// The fields of a decision event.
#[derive(Debug, Default)]
struct DecisionFields {
    attributes: Vec<KeyValue>,
    traceparent: Option<String>,
    since_us: u64,
    took_us: u64,
}

impl Visit for DecisionFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let attribute = match field.name() {
            "surface" => "tollgate.surface",
            "policy" => "tollgate.policy",
            "answer" => "tollgate.answer",
            "traceparent" => return self.traceparent = Some(value.to_owned()),
            _ => return,
        };
        self.attributes.push(KeyValue::new(attribute, value.to_owned()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "since_us" => self.since_us = value,
            "took_us" => self.took_us = value,
            _ => {}
        }
    }

    /// The message is the same for all events.
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Extractor for DecisionFields {
    fn get(&self, key: &str) -> Option<&str> {
        self.traceparent.as_deref().filter(|_| key == "traceparent")
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}
