//! Environments that cannot be, and what in others does nothing.

use crate::basic::folder;

#[test]
fn what_cannot_be_is_told_with_the_remedy_and_ends_it() {
    let folder = folder();
    for (variables, said) in [
        (&[][..], "error: REDIS_URL is not set; name the server, such as REDIS_URL=redis:6379"),
        (&[("BACKEND_TYPE", "memcache")], "error: BACKEND_TYPE is \"memcache\"; Memcached is no"),
        (
            &[("BACKEND_TYPE", "memory"), ("GRPC_PORT", "grpc"), ("SHADOW_MODE", "on")],
            "error: GRPC_PORT is \"grpc\"; write a whole number, or leave it out\n\
             error: SHADOW_MODE is \"on\"; write true or false, or leave it out",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("GRPC_SERVER_USE_TLS", "true")],
            "error: GRPC_SERVER_TLS_CERT is not set; name the file",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("DEBUG_HOST", "192.0.2.1")],
            "cannot listen at 192.0.2.1:0",
        ),
        (
            &[("BACKEND_TYPE", "memory"), ("RUNTIME_APPDIRECTORY", "nowhere")],
            "nowhere: it cannot be read: No such file or directory (os error 2)\n --> \
             RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY\n",
        ),
    ] {
        let (code, output, log) = folder.ends(variables);
        assert_eq!((code, &*output), (2, ""), "{variables:?}: {log}");
        assert!(log.contains(said), "{variables:?}: {log}");
    }
}

#[test]
fn a_file_that_is_wrong_ends_it_unless_it_may_start_without() {
    let folder = folder();
    folder.limits("wrong.yaml", "domain: wrong\ndescriptors: [{ value: v }]\n");
    let (code, _, log) = folder.ends(&[("BACKEND_TYPE", "memory")]);
    assert_eq!(code, 2);
    assert!(log.contains("wrong.yaml") && log.contains("descriptor has empty key"), "{log}");
    let forced = [("BACKEND_TYPE", "memory"), ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")];
    let mut ratelimit = folder.start(&forced);
    let said = ratelimit.hear("it starts without limits");
    assert!(said.contains("descriptor has empty key"), "{said}");
}

#[test]
fn variables_that_do_nothing_are_named_once() {
    let folder = folder();
    let mut ratelimit = folder.start(&[
        ("BACKEND_TYPE", "memory"),
        ("STATSD_HOST", "statsd"),
        ("LOCAL_CACHE_SIZE_IN_BYTES", "1000000"),
        ("REDIS_PERSECOND", "true"),
        // As it is anyway.
        ("USE_STATSD", "false"),
        ("STATSD_PORT", "8125"),
        ("MEMCACHE_TLS", "false"),
        ("TOLLGATE_STORE__URL", "nonsense"),
    ]);
    let mut heard = ratelimit.hear("STATSD_HOST is ignored: nothing is sent to a StatsD");
    for name in ["REDIS_PERSECOND", "LOCAL_CACHE_SIZE_IN_BYTES"] {
        assert!(heard.contains(&format!("{name} is ignored: ")), "{heard}");
    }
    ratelimit.signal(rustix::process::Signal::INT);
    std::io::Read::read_to_string(&mut ratelimit.log, &mut heard).unwrap();
    for name in ["USE_STATSD", "STATSD_PORT", "MEMCACHE_TLS", "TOLLGATE"] {
        assert!(!heard.contains(name), "{heard}");
    }
}

#[test]
fn the_variables_are_listed_for_whoever_asks() {
    let folder = folder();
    let list = |arguments: &[&str]| {
        let output = folder.command(&[]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = list(&["--variables"]);
    assert!(listed.contains("\n  GRPC_PORT (number) [8081]\n"), "{listed}");
    assert!(list(&["--help"]).contains("envoyproxy/ratelimit"));
    assert!(list(&["--version"]).starts_with("ratelimit "));
}

#[test]
fn a_log_of_json_has_nothing_else_beside_it() {
    let folder = folder();
    let port = tollgate_testkit::Port::reserve();
    let number = port.number().to_string();
    let mut child = folder
        .command(&[
            ("BACKEND_TYPE", "memory"),
            ("LOG_FORMAT", "json"),
            ("LOG_LEVEL", "info"),
            ("PORT", &number),
            ("STATSD_HOST", "statsd"),
        ])
        .spawn()
        .unwrap();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port.number()));
    while std::net::TcpStream::connect(address).is_err() {
        std::thread::yield_now();
    }
    assert_eq!(crate::process::get(address, "/healthcheck").0, 200);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut said = [String::new(), String::new()];
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut said[0]).unwrap();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said[1]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(said[0], "");
    for line in said[1].lines() {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    assert!(said[1].contains("STATSD_HOST is ignored") && said[1].contains("ready"), "{}", said[1]);
}
