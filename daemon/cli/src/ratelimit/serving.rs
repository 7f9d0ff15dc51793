//! Where it listens, and what it logs.

use std::path::PathBuf;

use tollgate_server::{Address, Config, LogFormat, LogLevel, TlsConfig};

use super::environment::Environment;

/// What is said of listeners beside their addresses in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) debug: Address,
    /// TLS of gRPC.
    pub(super) tls: Option<TlsConfig>,
}

const MAX_PORT: u32 = 65_535;
const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"];

/// Says where it listens and what it logs.
pub(super) fn read(environment: &Environment, config: &mut Config) -> Listening {
    config.listen.http = tcp(environment, "HOST", "PORT");
    let grpc = tcp(environment, "GRPC_HOST", "GRPC_PORT");
    config.listen.grpc = match environment.some("GRPC_UDS") {
        Some(path) => Address::Unix(path.into()),
        None => grpc,
    };
    config.listen.resp = Address::Off;
    let metrics = metrics_address(environment);
    config.listen.metrics =
        if environment.truth("USE_PROMETHEUS") { metrics } else { Address::Off };
    config.envoy.compat.metrics_path = Some(metrics_path(environment));
    let age = environment.duration("GRPC_MAX_CONNECTION_AGE");
    // Nothing said that a connection must end at all.
    config.limits.connection_age = if age.is_zero() { NEVER } else { age };
    log(environment, config);
    Listening { debug: tcp(environment, "DEBUG_HOST", "DEBUG_PORT"), tls: tls(environment) }
}

/// As good as never: a hundred years.
const NEVER: std::time::Duration = std::time::Duration::from_secs(100 * 366 * 24 * 60 * 60);

fn tcp(environment: &Environment, host: &'static str, port: &'static str) -> Address {
    let port = environment.whole(port, 0, MAX_PORT).unwrap_or_default();
    let host = environment.text(host);
    // An address of IPv6 stands in brackets before a port.
    let is_bare = host.contains(':') && !host.starts_with('[');
    Address::Tcp(if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

fn metrics_address(environment: &Environment) -> Address {
    const NAME: &str = "PROMETHEUS_ADDR";
    // Empty means the default, for the reference too.
    let said = environment.some(NAME).unwrap_or_else(|| ":9090".to_owned());
    let port = said.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(_))) {
        environment.refuse(NAME, "write :PORT or HOST:PORT, such as :9090");
    }
    Address::Tcp(said)
}

fn metrics_path(environment: &Environment) -> String {
    const NAME: &str = "PROMETHEUS_PATH";
    let path = environment.some(NAME).unwrap_or_else(|| "/metrics".to_owned());
    if !path.starts_with('/') {
        environment.refuse(NAME, "write a path that begins with /, such as /metrics");
    }
    path
}

/// The files of TLS for gRPC, where it is spoken. What would make it weaker than it is said to be is
/// refused.
fn tls(environment: &Environment) -> Option<TlsConfig> {
    let is_on = environment.truth("GRPC_SERVER_USE_TLS");
    let cert = environment.some("GRPC_SERVER_TLS_CERT").map(PathBuf::from);
    let key = environment.some("GRPC_SERVER_TLS_KEY").map(PathBuf::from);
    let client_ca = environment.some("GRPC_CLIENT_TLS_CACERT").map(PathBuf::from);
    let san = environment.some("GRPC_CLIENT_TLS_SAN");
    if !is_on {
        if client_ca.is_some() {
            let remedy = "clients show a certificate with TLS only: set GRPC_SERVER_USE_TLS=true, \
                          or leave it out";
            environment.refuse("GRPC_CLIENT_TLS_CACERT", remedy);
        }
        return None;
    }
    if san.is_some() && client_ca.is_none() {
        let remedy = "no client is asked for a certificate: name the file that vouches for theirs \
                      in GRPC_CLIENT_TLS_CACERT, or leave it out";
        environment.refuse("GRPC_CLIENT_TLS_SAN", remedy);
    }
    let (Some(cert), Some(key)) = (&cert, &key) else {
        let missing = if cert.is_none() { "GRPC_SERVER_TLS_CERT" } else { "GRPC_SERVER_TLS_KEY" };
        environment.refuse(missing, "name the file, or leave out GRPC_SERVER_USE_TLS");
        return None;
    };
    let mut tls = TlsConfig::new(cert, key);
    tls.client_ca = client_ca;
    tls.client_name = san;
    Some(tls)
}

fn log(environment: &Environment, config: &mut Config) {
    config.log.level = match environment.word("LOG_LEVEL", LEVELS) {
        Some("trace") => LogLevel::Trace,
        Some("debug") => LogLevel::Debug,
        Some("info") => LogLevel::Info,
        Some("error" | "fatal" | "panic") => LogLevel::Error,
        _ => LogLevel::Warn,
    };
    // Whatever is no word for JSON is text, as for the reference.
    let is_json = environment.text("LOG_FORMAT").eq_ignore_ascii_case("json");
    config.log.format = if is_json { LogFormat::Json } else { LogFormat::Text };
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    fn read_of(lines: &str) -> (Config, Listening, Vec<String>) {
        let environment = environment(lines);
        let mut config = Config::default();
        let listening = read(&environment, &mut config);
        let wrong = environment.wrong().iter().map(ToString::to_string).collect();
        (config, listening, wrong)
    }

    #[test]
    fn it_listens_where_the_variables_say() {
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
            let (config, listening, wrong) = read_of(lines);
            let listen = &config.listen;
            let read = [&listen.http, &listen.grpc, &listening.debug, &listen.metrics];
            assert_eq!(read.map(ToString::to_string), addresses, "{lines}");
            assert_eq!(config.listen.resp, Address::Off);
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }

    #[test]
    fn tls_is_never_weaker_than_it_is_said_to_be() {
        const FILES: &str = "GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k";
        let mut full = TlsConfig::new("/c", "/k");
        full.client_ca = Some("/a".into());
        full.client_name = Some("envoy".to_owned());
        for (lines, tls, wrong) in [
            ("", None, None),
            (FILES, None, None),
            ("GRPC_SERVER_USE_TLS=1 FILES", Some(TlsConfig::new("/c", "/k")), None),
            (
                "GRPC_SERVER_USE_TLS=1 FILES GRPC_CLIENT_TLS_CACERT=/a GRPC_CLIENT_TLS_SAN=envoy",
                Some(full),
                None,
            ),
            ("GRPC_SERVER_USE_TLS=1", None, Some("GRPC_SERVER_TLS_CERT is not set; name")),
            (
                "GRPC_SERVER_USE_TLS=1 GRPC_SERVER_TLS_CERT=/c",
                None,
                Some("GRPC_SERVER_TLS_KEY is not set; name"),
            ),
            ("GRPC_CLIENT_TLS_CACERT=/a", None, Some("GRPC_CLIENT_TLS_CACERT is \"/a\"; clients")),
            (
                "GRPC_SERVER_USE_TLS=1 FILES GRPC_CLIENT_TLS_SAN=envoy",
                None,
                Some("GRPC_CLIENT_TLS_SAN is \"envoy\"; no client is asked"),
            ),
        ] {
            let (_, listening, said) = read_of(&lines.replace("FILES", FILES));
            match wrong {
                None => assert_eq!((listening.tls, said), (tls, vec![]), "{lines}"),
                Some(wrong) => assert!(said[0].starts_with(wrong), "{lines}: {said:?}"),
            }
        }
    }

    #[test]
    fn the_log_is_what_it_was() {
        for (lines, level, format) in [
            ("", LogLevel::Warn, LogFormat::Text),
            ("LOG_LEVEL=DEBUG LOG_FORMAT=JSON", LogLevel::Debug, LogFormat::Json),
            ("LOG_LEVEL=warning LOG_FORMAT=pretty", LogLevel::Warn, LogFormat::Text),
            ("LOG_LEVEL=fatal", LogLevel::Error, LogFormat::Text),
        ] {
            let (config, _, wrong) = read_of(lines);
            assert_eq!((config.log.level, config.log.format), (level, format), "{lines}");
            assert!(wrong.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_an_address_is_refused() {
        for (lines, wrong) in [
            ("PORT=65536", "PORT is \"65536\"; write a number from 0 to 65535"),
            ("PROMETHEUS_ADDR=9090", "PROMETHEUS_ADDR is \"9090\"; write :PORT"),
            ("PROMETHEUS_PATH=metrics", "PROMETHEUS_PATH is \"metrics\"; write a path"),
            ("LOG_LEVEL=loud", "LOG_LEVEL is \"loud\"; write one of"),
        ] {
            let (.., said) = read_of(lines);
            assert!(said[0].starts_with(wrong), "{said:?}");
        }
    }
}
