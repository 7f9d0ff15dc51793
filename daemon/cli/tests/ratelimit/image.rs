//! The image, and how gateways run the one that it stands in for.

use std::fs;
use std::path::Path;

use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::basic::folder;
use crate::process::get;

/// What Envoy Gateway sets for the container of its rate limit service, with files in place of those
/// that it mounts, and other ports.
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
async fn the_environment_of_envoy_gateway_is_taken_as_it_is() {
    let server = tollgate_testkit::Server::start();
    let folder = folder();
    let certs = folder.path().join("certs");
    certificate(&certs);
    let (address, certs) = (server.address(), certs.display().to_string());
    let values: Vec<_> = GATEWAY
        .iter()
        .map(|(name, value)| (*name, value.replace("/certs", &certs).replace("REDIS", &address)))
        .collect();
    let variables: Vec<_> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    let mut ratelimit = folder.start(&variables);
    let heard = ratelimit.hear("PROMETHEUS_MAPPER_YAML is ignored");
    assert!(heard.contains("GRPC_SERVER_TLS_CA_CERT is ignored"), "{heard}");
    assert_eq!(heard.matches(" is ignored").count(), 2, "{heard}");
    // There is no control plane of that name here, and it is healthy all the same, as it was told.
    ratelimit.wait_for_health(200);
    let (status, metrics) = get(ratelimit.at("metrics"), "/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains("ratelimit_service_config_load_success 0\n"), "{metrics}");
    // gRPC speaks TLS.
    let plain = Endpoint::from_shared(format!("http://{}", ratelimit.grpc())).unwrap();
    let mut health = HealthClient::new(plain.connect_lazy());
    let asked = health.check(HealthCheckRequest::default()).await;
    assert!(asked.is_err(), "it speaks without TLS");
}

fn certificate(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    fs::write(folder.join("ca.crt"), made.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn the_image_has_the_program_where_the_reference_has_it() {
    let dockerfile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Dockerfile");
    let text = fs::read_to_string(dockerfile).unwrap();
    let stages: Vec<_> = text.split("\nFROM ").collect();
    let stage =
        stages.iter().find(|stage| stage.lines().next().unwrap().ends_with(" AS ratelimit"));
    let stage = stage.expect("there is no stage ratelimit");
    assert!(stage.contains("/bin/ratelimit"), "{stage}");
    assert!(stage.contains("ENTRYPOINT [\"/bin/ratelimit\"]"), "{stage}");
    assert!(stage.contains("EXPOSE 8080 8081 6070"), "{stage}");
    // Who builds without naming a stage gets the last one, which is the daemon by its own name.
    assert!(stages.last().unwrap().contains("ENTRYPOINT [\"/usr/local/bin/tollgate\"]"));
}
