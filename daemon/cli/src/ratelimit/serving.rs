//! Listeners, logging and tracing.

use std::path::PathBuf;

use tollgate_daemon::{Address, Config, LogFormat, LogLevel, TlsConfig};

use super::environment::Environment;
use crate::serve::{Service, Tracing};

/// Settings of listeners that are not part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) debug: Address,
    /// TLS for gRPC.
    pub(super) tls: Option<TlsConfig>,
}

const MAX_PORT: u32 = 65_535;
const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"];

/// Sets listeners and logging.
pub(super) fn read(environment: &Environment, config: &mut Config) -> Listening {
    config.listen.http = tcp(environment, "HOST", "PORT");
    let grpc = tcp(environment, "GRPC_HOST", "GRPC_PORT");
    config.listen.grpc = match environment.non_empty("GRPC_UDS") {
        Some(path) => Address::Unix(path.into()),
        None => grpc,
    };
    config.listen.resp = Address::Off;
    config.listen.admin = Address::Off;
    let metrics = metrics_address(environment);
    config.listen.metrics = if environment.bool("USE_PROMETHEUS") { metrics } else { Address::Off };
    config.envoy.compat.metrics_path = Some(metrics_path(environment));
    let age = environment.duration("GRPC_MAX_CONNECTION_AGE");
    // Zero means no limit.
    config.limits.connection_age = if age.is_zero() { UNLIMITED_AGE } else { age };
    log(environment, config);
    Listening { debug: tcp(environment, "DEBUG_HOST", "DEBUG_PORT"), tls: tls(environment) }
}

/// A hundred years.
const UNLIMITED_AGE: std::time::Duration = std::time::Duration::from_secs(100 * 366 * 24 * 60 * 60);

fn tcp(environment: &Environment, host: &'static str, port: &'static str) -> Address {
    // An invalid port is recorded as an error, and the address is not used.
    let port = environment.integer(port, 0, MAX_PORT).unwrap_or(0);
    let host = environment.text(host);
    // IPv6 addresses need brackets before a port.
    let is_bare = host.contains(':') && !host.starts_with('[');
    Address::Tcp(if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

fn metrics_address(environment: &Environment) -> Address {
    const NAME: &str = "PROMETHEUS_ADDR";
    // An empty value means the default, as in envoyproxy/ratelimit.
    let address = environment.non_empty(NAME).unwrap_or_else(|| ":9090".to_owned());
    let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(_))) {
        environment.reject(NAME, "write :PORT or HOST:PORT, such as :9090");
    }
    Address::Tcp(address)
}

fn metrics_path(environment: &Environment) -> String {
    const NAME: &str = "PROMETHEUS_PATH";
    let path = environment.non_empty(NAME).unwrap_or_else(|| "/metrics".to_owned());
    if !path.starts_with('/') {
        environment.reject(NAME, "write a path that begins with /, such as /metrics");
    }
    path
}

/// The TLS files for gRPC, if it is enabled. Settings that would have no effect are errors, because
/// they suggest more protection than there is.
fn tls(environment: &Environment) -> Option<TlsConfig> {
    let is_on = environment.bool("GRPC_SERVER_USE_TLS");
    let cert = environment.non_empty("GRPC_SERVER_TLS_CERT").map(PathBuf::from);
    let key = environment.non_empty("GRPC_SERVER_TLS_KEY").map(PathBuf::from);
    let client_ca = environment.non_empty("GRPC_CLIENT_TLS_CACERT").map(PathBuf::from);
    let san = environment.non_empty("GRPC_CLIENT_TLS_SAN");
    if !is_on {
        if client_ca.is_some() {
            let remedy =
                "client certificates need TLS: set GRPC_SERVER_USE_TLS=true, or leave it out";
            environment.reject("GRPC_CLIENT_TLS_CACERT", remedy);
        }
        return None;
    }
    if san.is_some() && client_ca.is_none() {
        let remedy = "client certificates are not requested: set GRPC_CLIENT_TLS_CACERT to the \
                      file with their authorities, or leave it out";
        environment.reject("GRPC_CLIENT_TLS_SAN", remedy);
    }
    let (Some(cert), Some(key)) = (&cert, &key) else {
        let missing = if cert.is_none() { "GRPC_SERVER_TLS_CERT" } else { "GRPC_SERVER_TLS_KEY" };
        environment.reject(missing, "set it to the file, or leave out GRPC_SERVER_USE_TLS");
        return None;
    };
    let mut tls = TlsConfig::new(cert, key);
    tls.client_ca = client_ca;
    tls.client_name = san;
    Some(tls)
}

fn log(environment: &Environment, config: &mut Config) {
    config.log.level = match environment.one_of("LOG_LEVEL", LEVELS) {
        Some("trace") => LogLevel::Trace,
        Some("debug") => LogLevel::Debug,
        Some("info") => LogLevel::Info,
        Some("error" | "fatal" | "panic") => LogLevel::Error,
        _ => LogLevel::Warn,
    };
    // Any other value means text, as in envoyproxy/ratelimit.
    let is_json = environment.text("LOG_FORMAT").eq_ignore_ascii_case("json");
    config.log.format = if is_json { LogFormat::Json } else { LogFormat::Text };
}

/// The service that spans name, if tracing is enabled.
pub(super) fn read_tracing(environment: &Environment) -> Tracing {
    let is_on = environment.bool("TRACING_ENABLED");
    let protocol = environment.text("TRACING_EXPORTER_PROTOCOL");
    let service = Service {
        name: environment.text("TRACING_SERVICE_NAME"),
        namespace: environment.non_empty("TRACING_SERVICE_NAMESPACE"),
        instance: environment.non_empty("TRACING_SERVICE_INSTANCE_ID"),
        sampled_millionths: environment.millionths("TRACING_SAMPLING_RATE"),
    };
    if !is_on {
        return Tracing::Off;
    }
    if !matches!(&*protocol, "" | "http") {
        let remedy = "write http, and set OTEL_EXPORTER_OTLP_ENDPOINT to the collector's HTTP \
                      port, usually 4318";
        environment.reject("TRACING_EXPORTER_PROTOCOL", remedy);
    }
    Tracing::As(service)
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    fn read_lines(lines: &str) -> (Config, Listening, Vec<String>) {
        let environment = environment(lines);
        let mut config = Config::default();
        let listening = read(&environment, &mut config);
        (config, listening, environment.errors())
    }

    #[test]
    fn listeners_have_the_addresses_of_the_variables() {
        for (lines, addresses) in [
            ("", ["0.0.0.0:8080", "0.0.0.0:8081", "0.0.0.0:6070", "off"]),
            ("PORT=80 HOST=::1", ["[::1]:80", "0.0.0.0:8081", "0.0.0.0:6070", "off"]),
            ("HOST= GRPC_PORT=1", [":8080", "0.0.0.0:1", "0.0.0.0:6070", "off"]),
            ("GRPC_UDS=/a/b", ["0.0.0.0:8080", "unix:/a/b", "0.0.0.0:6070", "off"]),
            ("DEBUG_PORT=0", ["0.0.0.0:8080", "0.0.0.0:8081", "0.0.0.0:0", "off"]),
            ("USE_PROMETHEUS=t", ["0.0.0.0:8080", "0.0.0.0:8081", "0.0.0.0:6070", ":9090"]),
            (
                "USE_PROMETHEUS=t PROMETHEUS_ADDR=h:1",
                ["0.0.0.0:8080", "0.0.0.0:8081", "0.0.0.0:6070", "h:1"],
            ),
        ] {
            let (config, listening, errors) = read_lines(lines);
            let listen = &config.listen;
            let found = [&listen.http, &listen.grpc, &listening.debug, &listen.metrics];
            assert_eq!(found.map(ToString::to_string), addresses, "{lines}");
            assert_eq!(config.listen.resp, Address::Off);
            assert!(errors.is_empty(), "{errors:?}");
        }
    }

    #[test]
    fn tls_settings_without_effect_are_errors() {
        const FILES: &str = "GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k";
        let mut full = TlsConfig::new("/c", "/k");
        full.client_ca = Some("/a".into());
        full.client_name = Some("envoy".to_owned());
        for (lines, tls, message) in [
            ("", None, None),
            (FILES, None, None),
            ("GRPC_SERVER_USE_TLS=1 FILES", Some(TlsConfig::new("/c", "/k")), None),
            (
                "GRPC_SERVER_USE_TLS=1 FILES GRPC_CLIENT_TLS_CACERT=/a GRPC_CLIENT_TLS_SAN=envoy",
                Some(full),
                None,
            ),
            ("GRPC_SERVER_USE_TLS=1", None, Some("GRPC_SERVER_TLS_CERT is not set; set it")),
            (
                "GRPC_SERVER_USE_TLS=1 GRPC_SERVER_TLS_CERT=/c",
                None,
                Some("GRPC_SERVER_TLS_KEY is not set; set it"),
            ),
            (
                "GRPC_CLIENT_TLS_CACERT=/a",
                None,
                Some("GRPC_CLIENT_TLS_CACERT is \"/a\"; client certificates"),
            ),
            (
                "GRPC_SERVER_USE_TLS=1 FILES GRPC_CLIENT_TLS_SAN=envoy",
                None,
                Some("GRPC_CLIENT_TLS_SAN is \"envoy\"; client certificates are not"),
            ),
        ] {
            let (_, listening, errors) = read_lines(&lines.replace("FILES", FILES));
            match message {
                None => assert_eq!((listening.tls, errors), (tls, vec![]), "{lines}"),
                Some(message) => assert!(errors[0].starts_with(message), "{lines}: {errors:?}"),
            }
        }
    }

    #[test]
    fn log_level_and_format_are_read() {
        for (lines, level, format) in [
            ("", LogLevel::Warn, LogFormat::Text),
            ("LOG_LEVEL=DEBUG LOG_FORMAT=JSON", LogLevel::Debug, LogFormat::Json),
            ("LOG_LEVEL=warning LOG_FORMAT=pretty", LogLevel::Warn, LogFormat::Text),
            ("LOG_LEVEL=fatal", LogLevel::Error, LogFormat::Text),
        ] {
            let (config, _, errors) = read_lines(lines);
            assert_eq!((config.log.level, config.log.format), (level, format), "{lines}");
            assert!(errors.is_empty());
        }
    }

    #[test]
    fn invalid_addresses_are_errors() {
        for (lines, message) in [
            ("PORT=65536", "PORT is \"65536\"; write a number from 0 to 65535"),
            ("PROMETHEUS_ADDR=9090", "PROMETHEUS_ADDR is \"9090\"; write :PORT"),
            ("PROMETHEUS_PATH=metrics", "PROMETHEUS_PATH is \"metrics\"; write a path"),
            ("LOG_LEVEL=loud", "LOG_LEVEL is \"loud\"; write one of"),
        ] {
            let (.., errors) = read_lines(lines);
            assert!(errors[0].starts_with(message), "{errors:?}");
        }
    }

    #[test]
    fn tracing_is_off_by_default_and_configurable() {
        assert_eq!(
            read_tracing(&environment("TRACING_SERVICE_NAME=envoy-ratelimit")),
            Tracing::Off
        );
        let on = "TRACING_ENABLED=true TRACING_SAMPLING_RATE=0.6";
        let Tracing::As(service) = read_tracing(&environment(on)) else { panic!("tracing is off") };
        assert_eq!((&*service.name, service.sampled_millionths), ("RateLimit", 600_000));
        assert_eq!((service.namespace, service.instance), (None, None));
        let grpc = environment("TRACING_ENABLED=true TRACING_EXPORTER_PROTOCOL=grpc");
        read_tracing(&grpc);
        assert!(grpc.errors()[0].contains("4318"));
    }
}
