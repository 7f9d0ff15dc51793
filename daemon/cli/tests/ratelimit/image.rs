//! The container image, and the environment of Envoy Gateway.

use std::fs;
use std::path::Path;

use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::basic::installation;
use crate::installation::get;
use crate::process::read_repository;

/// The variables that Envoy Gateway sets for its rate limit service, with other ports and files.
const GATEWAY: &[(&str, &str)] = &[
    ("RUNTIME_ROOT", "/data"),
    ("RUNTIME_SUBDIRECTORY", "ratelimit"),
    ("RUNTIME_IGNOREDOTFILES", "true"),
    ("RUNTIME_WATCH_ROOT", "false"),
    ("LOG_LEVEL", "info"),
    ("USE_STATSD", "false"),
    ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
    ("CONFIG_GRPC_XDS_SERVER_URL", "envoy-gateway:18001"),
    ("CONFIG_GRPC_XDS_NODE_ID", "envoy-ratelimit"),
    ("GRPC_SERVER_USE_TLS", "true"),
    ("GRPC_SERVER_TLS_CERT", "/certs/tls.crt"),
    ("GRPC_SERVER_TLS_KEY", "/certs/tls.key"),
    ("GRPC_SERVER_TLS_CA_CERT", "/certs/ca.crt"),
    ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"),
    ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "/certs/tls.crt"),
    ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "/certs/tls.key"),
    ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "/certs/ca.crt"),
    ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
    ("REDIS_SOCKET_TYPE", "tcp"),
    ("REDIS_URL", "REDIS"),
    ("USE_PROMETHEUS", "true"),
    ("PROMETHEUS_ADDR", ":0"),
    ("PROMETHEUS_MAPPER_YAML", "/etc/statsd-exporter/conf.yaml"),
];

#[tokio::test(flavor = "multi_thread")]
async fn environment_of_envoy_gateway_is_accepted() {
    let server = tollgate_testkit::Server::start();
    let installation = installation();
    let certs = installation.path().join("certs");
    write_certificate(&certs);
    let (address, certs) = (server.address(), certs.display().to_string());
    let values: Vec<_> = GATEWAY
        .iter()
        .map(|(name, value)| (*name, value.replace("/certs", &certs).replace("REDIS", &address)))
        .collect();
    let variables: Vec<_> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    let mut ratelimit = installation.start(&variables);
    let logged = ratelimit.read_log_until("PROMETHEUS_MAPPER_YAML is ignored");
    assert!(logged.contains("GRPC_SERVER_TLS_CA_CERT is ignored"), "{logged}");
    assert_eq!(logged.matches(" is ignored").count(), 2, "{logged}");
    // The control plane is unreachable, and FORCE_START_WITHOUT_INITIAL_CONFIG makes that healthy.
    ratelimit.wait_for_health(200);
    let (status, metrics) = get(ratelimit.at("metrics"), "/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains("ratelimit_service_config_load_success 0\n"), "{metrics}");
    // gRPC requires TLS.
    let plain = Endpoint::from_shared(format!("http://{}", ratelimit.grpc())).unwrap();
    let mut health = HealthClient::new(plain.connect_lazy());
    let response = health.check(HealthCheckRequest::default()).await;
    assert!(response.is_err(), "gRPC works without TLS");
}

fn write_certificate(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), generated.cert.pem()).unwrap();
    fs::write(folder.join("ca.crt"), generated.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), generated.signing_key.serialize_pem()).unwrap();
}

#[test]
fn image_has_the_path_and_ports_of_envoyproxy_ratelimit() {
    let text = read_repository("deploy/Dockerfile");
    let stages: Vec<_> = text.split("\nFROM ").collect();
    let stage =
        stages.iter().find(|stage| stage.lines().next().unwrap().ends_with(" AS ratelimit"));
    let stage = stage.expect("there is no stage ratelimit");
    assert!(stage.contains("/bin/ratelimit"), "{stage}");
    assert!(stage.contains("ENTRYPOINT [\"/bin/ratelimit\"]"), "{stage}");
    assert!(stage.contains("EXPOSE 8080 8081 6070"), "{stage}");
    // Without a target, the last stage is built: the daemon under its own name.
    assert!(stages.last().unwrap().contains("ENTRYPOINT [\"/usr/local/bin/tollgate\"]"));
}
