//! OpenTelemetry spans.

use super::environment::Environment;
use crate::serve::{Service, Tracing};

/// The service that spans name, if tracing is enabled.
pub(super) fn read(environment: &Environment) -> Tracing {
    let is_on = environment.bool("TRACING_ENABLED");
    let protocol = environment.text("TRACING_EXPORTER_PROTOCOL");
    let service = Service {
        name: environment.text("TRACING_SERVICE_NAME"),
        namespace: environment.non_empty("TRACING_SERVICE_NAMESPACE"),
        instance: environment.non_empty("TRACING_SERVICE_INSTANCE_ID"),
        sampled_millionths: environment.decimal("TRACING_SAMPLING_RATE").millionths,
    };
    if !is_on {
        return Tracing::Off;
    }
    if !matches!(&*protocol, "" | "http") {
        let remedy = "write http, and set OTEL_EXPORTER_OTLP_ENDPOINT to the collector's HTTP port, \
                      usually 4318";
        environment.reject("TRACING_EXPORTER_PROTOCOL", remedy);
    }
    Tracing::As(service)
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    #[test]
    fn tracing_is_off_by_default_and_configurable() {
        assert_eq!(read(&environment("TRACING_SERVICE_NAME=envoy-ratelimit")), Tracing::Off);
        let on = "TRACING_ENABLED=true TRACING_SAMPLING_RATE=0.6";
        let Tracing::As(read) = read(&environment(on)) else { panic!("tracing is off") };
        assert_eq!((&*read.name, read.sampled_millionths), ("RateLimit", 600_000));
        assert_eq!((read.namespace, read.instance), (None, None));
        let grpc = environment("TRACING_ENABLED=true TRACING_EXPORTER_PROTOCOL=grpc");
        super::read(&grpc);
        assert!(grpc.errors()[0].to_string().contains("4318"));
    }
}
