//! Invalid environments, and variables without effect.

use std::net::{SocketAddr, TcpStream};

use rustix::process::{Pid, Signal, kill_process};
use tollgate_testkit::Port;

use crate::basic::installation;
use crate::installation::get;
use crate::process::output;

#[test]
fn invalid_variables_end_the_program_with_a_remedy() {
    let installation = installation();
    for (variables, message) in [
        (
            &[][..],
            "error: REDIS_URL is not set; set it to the server, such as REDIS_URL=redis:6379",
        ),
        (&[("BACKEND_TYPE", "memcache")], "error: BACKEND_TYPE is \"memcache\"; Memcached is not"),
        (
            &[("BACKEND_TYPE", "memory"), ("GRPC_PORT", "grpc"), ("SHADOW_MODE", "on")],
            "error: GRPC_PORT is \"grpc\"; write a whole number, or leave it out\n\
             error: SHADOW_MODE is \"on\"; write true or false, or leave it out",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("GRPC_SERVER_USE_TLS", "true")],
            "error: GRPC_SERVER_TLS_CERT is not set; set it to the file",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("DEBUG_HOST", "192.0.2.1")],
            "cannot listen at 192.0.2.1:0",
        ),
        (
            &[("REDIS_URL", "h:x"), ("REDIS_SOCKET_TYPE", "tcp")],
            "error: REDIS_URL: the port of the store's URL: write a number from 1 to 65535",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("RUNTIME_APPDIRECTORY", "nowhere")],
            "error: RUNTIME_ROOT/RUNTIME_APPDIRECTORY: there is no directory ",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("RUNTIME_APPDIRECTORY", "nowhere")],
            "nowhere; it is RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, whose last part is \"config\" by default\n",
        ),
        (
            &[("REDIS_URI", "redis:6379")],
            "\nwarning: REDIS_URI is unknown; did you mean \"REDIS_URL\"?\n",
        ),
    ] {
        let (code, output, log) = installation.run(variables);
        assert_eq!((code, &*output), (2, ""), "{variables:?}: {log}");
        assert!(log.contains(message), "{variables:?}: {log}");
    }
}

#[test]
fn invalid_file_ends_the_program_unless_it_may_start_without_limits() {
    let installation = installation();
    installation.limits("wrong.yaml", "domain: wrong\ndescriptors: [{ value: v }]\n");
    let (code, _, log) = installation.run(&[("BACKEND_TYPE", "memory")]);
    assert_eq!(code, 2);
    assert!(log.contains("wrong.yaml") && log.contains("descriptor has empty key"), "{log}");
    let forced = [("BACKEND_TYPE", "memory"), ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")];
    let mut ratelimit = installation.start(&forced);
    let logged = ratelimit.read_log_until("starting without limits");
    assert!(logged.contains("descriptor has empty key"), "{logged}");
}

#[test]
fn variables_without_effect_are_logged_once() {
    let installation = installation();
    let mut ratelimit = installation.start(&[
        ("BACKEND_TYPE", "memory"),
        ("STATSD_HOST", "statsd"),
        ("LOCAL_CACHE_SIZE_IN_BYTES", "1000000"),
        ("REDIS_PERSECOND", "true"),
        ("GRPC_PROT", "8081"),
        // Values that match the behaviour of Tollgate.
        ("USE_STATSD", "false"),
        ("STATSD_PORT", "8125"),
        ("MEMCACHE_TLS", "false"),
        ("TOLLGATE_STORE__URL", "nonsense"),
    ]);
    let mut logged = ratelimit.read_log_until("STATSD_HOST is ignored: ");
    assert!(logged.contains("STATSD_HOST is ignored: StatsD is not supported"), "{logged}");
    assert!(logged.contains("LOCAL_CACHE_SIZE_IN_BYTES is ignored: "), "{logged}");
    assert!(logged.contains("REDIS_PERSECOND is ignored: "), "{logged}");
    logged += &ratelimit.daemon.stop_and_read_log();
    assert!(logged.contains("GRPC_PROT is unknown; did you mean \"GRPC_PORT\"?"), "{logged}");
    for name in ["USE_STATSD", "STATSD_PORT", "MEMCACHE_TLS", "TOLLGATE"] {
        assert!(!logged.contains(name), "{logged}");
    }
}

#[test]
fn flag_variables_lists_all_variables() {
    let installation = installation();
    let list = |arguments: &[&str]| output(installation.command(&[]).args(arguments), b"").1;
    let listed = list(&["--variables"]);
    assert!(listed.contains("\n  GRPC_PORT (number) [8081]\n"), "{listed}");
    assert!(list(&["--help"]).contains("envoyproxy/ratelimit"));
    assert!(list(&["--version"]).starts_with("ratelimit "));
}

#[test]
fn json_log_contains_only_json_lines() {
    let installation = installation();
    let port = Port::reserve();
    let number = port.number().to_string();
    let child = installation
        .command(&[
            ("BACKEND_TYPE", "memory"),
            ("LOG_FORMAT", "json"),
            ("LOG_LEVEL", "info"),
            ("PORT", &number),
            ("STATSD_HOST", "statsd"),
        ])
        .spawn()
        .unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
    while TcpStream::connect(address).is_err() {
        std::thread::yield_now();
    }
    assert_eq!(get(address, "/healthcheck").0, 200);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b""[..]));
    let log = String::from_utf8(output.stderr).unwrap();
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    assert!(log.contains("STATSD_HOST is ignored") && log.contains("ready"), "{log}");
}
