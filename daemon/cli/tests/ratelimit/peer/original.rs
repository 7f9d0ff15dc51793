//! Runs envoyproxy/ratelimit.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tollgate_testkit::{Port, until};

use crate::installation::get;
use crate::process::repository;

const PROGRAM: &str = "target/tools/ratelimit/ratelimit";

/// A running envoyproxy/ratelimit, killed on drop.
#[derive(Debug)]
pub(crate) struct Original {
    child: Child,
    /// HTTP, gRPC, debug and metrics.
    ports: [Port; 4],
}

impl Original {
    pub(crate) fn is_installed() -> bool {
        repository(PROGRAM).is_file()
    }

    /// Starts it with the limits in `folder` and these variables, and waits until it is healthy.
    pub(crate) fn start(folder: &Path, store: &str, variables: &[(&str, &str)]) -> Self {
        let ports = [(); 4].map(|()| Port::reserve());
        let mut command = Command::new(repository(PROGRAM));
        command.env_clear().env("RUNTIME_ROOT", folder).env("REDIS_URL", store);
        for (name, port) in ["PORT", "GRPC_PORT", "DEBUG_PORT"].iter().zip(&ports) {
            command.env(name, port.number().to_string());
        }
        command.env("PROMETHEUS_ADDR", format!("127.0.0.1:{}", ports[3].number()));
        command.envs([
            ("HOST", "127.0.0.1"),
            ("GRPC_HOST", "127.0.0.1"),
            ("DEBUG_HOST", "127.0.0.1"),
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("RUNTIME_WATCH_ROOT", "false"),
            ("LOG_LEVEL", "error"),
            ("USE_STATSD", "false"),
            ("USE_PROMETHEUS", "true"),
            ("STATS_FLUSH_INTERVAL", "100ms"),
        ]);
        command.envs(variables.iter().copied());
        let log = folder.join("original.log");
        let output = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let child = command.spawn().unwrap();
        let original = Original { child, ports };
        let http = original.at(0);
        let healthy = until(|| {
            let listens = TcpStream::connect(http).is_ok();
            (listens && get(http, "/healthcheck").0 == 200).then_some(())
        });
        assert!(healthy.is_some(), "not healthy: {}", fs::read_to_string(&log).unwrap());
        original
    }

    fn at(&self, index: usize) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports[index].number()).into()
    }

    pub(crate) fn grpc(&self) -> SocketAddr {
        self.at(1)
    }

    pub(crate) fn metrics(&self) -> String {
        get(self.at(3), "/metrics").1
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
