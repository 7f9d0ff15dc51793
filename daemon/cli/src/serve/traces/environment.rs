//! Environment variables whose errors the SDK would ignore.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};

/// The default time limit of an export.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The values of `OTEL_TRACES_SAMPLER`.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// The time limit of an export; `None` if no collector is set or tracing is disabled.
pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Duration>> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let either = |name: &'static str, general: &'static str| {
        let own = variable(name).map(|value| (name, value));
        own.or_else(|| variable(general).map(|value| (general, value)))
    };
    let is_disabled =
        variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let endpoint = either("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
    let exporter = variable("OTEL_TRACES_EXPORTER");
    if is_disabled || exporter.as_deref() == Some("none") {
        return Ok(None);
    }
    match (exporter.as_deref(), &endpoint) {
        (Some("otlp"), _) | (None, Some(_)) => {}
        (None, None) => return Ok(None),
        (Some(other), _) => bail!("OTEL_TRACES_EXPORTER is {other:?}; write otlp or none"),
    }
    if let Some((name, value)) = endpoint.filter(|(_, url)| !url.starts_with("http://")) {
        bail!(
            "{name} is {value:?}; write the URL of a local collector, such as http://127.0.0.1:4318"
        );
    }
    let protocol = either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
    if let Some((name, value)) = protocol.filter(|(_, value)| value != "http/protobuf") {
        bail!("{name} is {value:?}; write http/protobuf");
    }
    sampler(variable("OTEL_TRACES_SAMPLER"), variable("OTEL_TRACES_SAMPLER_ARG"))?;
    let timeout = either("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
    let timeout = timeout.map(|(name, value)| {
        let wrong = || anyhow!("{name} is {value:?}; write milliseconds, such as 10000");
        value.parse().map(Duration::from_millis).map_err(|_| wrong())
    });
    Ok(Some(timeout.transpose()?.unwrap_or(DEFAULT_TIMEOUT)))
}

fn sampler(sampler: Option<String>, argument: Option<String>) -> Result<()> {
    let Some(sampler) = sampler else { return Ok(()) };
    if !SAMPLERS.contains(&&*sampler) {
        bail!("OTEL_TRACES_SAMPLER is {sampler:?}; write one of {}", SAMPLERS.join(", "));
    }
    let is_share = |text: &str| text.parse::<f64>().is_ok_and(|share| (0.0..=1.0).contains(&share));
    let argument = argument.unwrap_or_default();
    if sampler.ends_with("traceidratio") && !is_share(&argument) {
        bail!("OTEL_TRACES_SAMPLER_ARG is {argument:?}; write a share from 0 to 1, such as 0.1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_variables_are_errors() {
        const AT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318";
        let seconds = |x| Ok(Some(Duration::from_secs(x)));
        for (variables, expected) in [
            ("", Ok(None)),
            (AT, seconds(10)),
            ("OTEL_TRACES_EXPORTER=otlp", seconds(10)),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://a/v1/traces", seconds(10)),
            ("OTEL_EXPORTER_OTLP_TIMEOUT=2000 AT", seconds(2)),
            ("OTEL_EXPORTER_OTLP_TIMEOUT=2s AT", Err("OTEL_EXPORTER_OTLP_TIMEOUT is \"2s\"")),
            ("OTEL_SDK_DISABLED=true AT", Ok(None)),
            ("OTEL_TRACES_EXPORTER=none AT", Ok(None)),
            ("OTEL_TRACES_EXPORTER=zipkin AT", Err("OTEL_TRACES_EXPORTER is \"zipkin\"")),
            ("OTEL_EXPORTER_OTLP_ENDPOINT=https://a", Err("OTEL_EXPORTER_OTLP_ENDPOINT is")),
            ("OTEL_EXPORTER_OTLP_PROTOCOL=grpc AT", Err("OTEL_EXPORTER_OTLP_PROTOCOL is")),
            ("OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf AT", seconds(10)),
            ("OTEL_TRACES_SAMPLER=some AT", Err("OTEL_TRACES_SAMPLER is \"some\"")),
            ("OTEL_TRACES_SAMPLER=always_off AT", seconds(10)),
            ("OTEL_TRACES_SAMPLER=traceidratio AT", Err("OTEL_TRACES_SAMPLER_ARG is \"\"")),
            (
                "OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=2 AT",
                Err("OTEL_TRACES_SAMPLER_ARG is \"2\""),
            ),
            ("OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.5 AT", seconds(10)),
        ] {
            let variables = variables.replace(" AT", &format!(" {AT}"));
            let value = |name: &str| {
                let mut all = variables.split(' ').filter_map(|part| part.split_once('='));
                all.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
            };
            let found = read(value);
            match expected {
                Ok(timeout) => assert_eq!(found.unwrap(), timeout, "{variables}"),
                Err(begin) => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.starts_with(begin), "{variables}: {error}");
                }
            }
        }
    }
}
