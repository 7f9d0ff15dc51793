//! The measured servers, and one that returns a constant, to show the cost of tonic itself.

use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

use anyhow::Result;
use bench::process::{self, PinnedProcess, cpu_ns};
use bench::report::{Report, Sample};
use envoy_types::pb::envoy::service::ratelimit::v3 as pb;
use pb::rate_limit_response::{Code, DescriptorStatus};
use pb::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use tollgate_testkit::Port;
use tonic::{Request, Response, Status};

use crate::peers::LIMITADOR;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: Port,
    pub(crate) process: PinnedProcess,
    /// Other ports that it listens on, which stay reserved.
    others: Vec<Port>,
}

/// The path of a file in this folder.
macro_rules! file {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare/", $name)
    };
}
pub(crate) use file;

impl Server {
    /// Starts a server, whose command gets its port, and waits until it listens.
    pub(crate) fn start(command: impl FnOnce(u16) -> Command) -> Result<Self> {
        let port = Port::reserve();
        let process = PinnedProcess::start(&command(port.number()))?;
        let address = (Ipv4Addr::LOCALHOST, port.number());
        process::wait("a server does not listen", || TcpStream::connect(address).is_ok())?;
        Ok(Server { port, process, others: Vec::new() })
    }

    /// Starts the daemon with one listener, `--http`, `--grpc` or `--resp`, in memory or on Redis.
    pub(crate) fn tollgate(listener: &str, redis: Option<&str>) -> Result<Self> {
        let tollgate = process::tollgate()?;
        let config = redis.map_or(file!("tollgate.yaml"), |_| file!("on_redis.yaml"));
        Server::start(|port| {
            let mut command = Command::new(tollgate);
            command.args(["serve", "--config", config, "--admin", "off"]);
            command.args(["--metrics", "127.0.0.1:0"]);
            for name in ["--http", "--grpc", "--resp"] {
                let own = format!("127.0.0.1:{port}");
                command.args([name, if name == listener { &own } else { "off" }]);
            }
            command.args(redis.map(|url| ["--store", url]).into_iter().flatten());
            command
        })
    }

    /// Starts limitador in memory, with the port of its HTTP interface or of its gRPC interface.
    pub(crate) fn limitador(report: &mut Report, is_http: bool) -> Result<Option<Self>> {
        let Some(program) = LIMITADOR.find(report) else { return Ok(None) };
        // Neither interface can be turned off.
        let other = Port::reserve();
        let mut server = Server::start(|port| {
            let (own, other) = (port.to_string(), other.number().to_string());
            let (http, grpc) = if is_http { (own, other) } else { (other, own) };
            let mut command = Command::new(program);
            command.args(["--rls-ip", "127.0.0.1", "--rls-port", &grpc]);
            command.args(["--http-ip", "127.0.0.1", "--http-port", &http]);
            command.arg(file!("limitador.yaml"));
            // The default is a thousand keys.
            command.args(["memory", "--cache", "1000000"]);
            command
        })?;
        server.keep([other]);
        Ok(Some(server))
    }

    /// Keeps ports reserved while the server runs.
    pub(crate) fn keep(&mut self, ports: impl IntoIterator<Item = Port>) {
        self.others.extend(ports);
    }

    /// The CPU time and the rate of a load, which returns the number of its operations and how many
    /// there were per second.
    pub(crate) fn measure(&self, load: impl FnOnce() -> Result<(u64, u64)>) -> Result<Sample> {
        measure(self.process.id(), load)
    }
}

/// As [`Server::measure`], of a process.
pub(crate) fn measure(id: u32, load: impl FnOnce() -> Result<(u64, u64)>) -> Result<Sample> {
    let before = cpu_ns(id)?;
    let (operations, rate) = load()?;
    // Threads that have ended do not count any more.
    let cpu_ns = cpu_ns(id)?.saturating_sub(before);
    Ok(Sample { rate, cpu_ps: cpu_ns * 1_000 / operations.max(1) })
}

/// Followed by a port, starts this program as the server that returns a constant.
const CONSTANT_FLAG: &str = "--constant";

/// The port after [`CONSTANT_FLAG`], if this program is started with it.
pub(crate) fn constant_port() -> Option<u16> {
    let mut args = std::env::args().skip_while(|arg| arg != CONSTANT_FLAG).skip(1);
    args.next()?.parse().ok()
}

/// The command of the server that returns a constant, for a port.
pub(crate) fn constant() -> Result<impl FnOnce(u16) -> Command> {
    let here = std::env::current_exe()?;
    Ok(move |port: u16| {
        let mut command = Command::new(here);
        command.args([CONSTANT_FLAG, &port.to_string()]);
        command
    })
}

/// Runs the server that returns a constant.
pub(crate) fn serve_constant(port: u16) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let service = RateLimitServiceServer::new(Constant);
    let server = tonic::transport::Server::builder().add_service(service);
    Ok(runtime.block_on(server.serve((Ipv4Addr::LOCALHOST, port).into()))?)
}

#[derive(Debug)]
struct Constant;

#[tonic::async_trait]
impl RateLimitService for Constant {
    async fn should_rate_limit(
        &self,
        request: Request<pb::RateLimitRequest>,
    ) -> Result<Response<pb::RateLimitResponse>, Status> {
        let status = DescriptorStatus {
            code: Code::Ok.into(),
            limit_remaining: 1_000_000,
            ..DescriptorStatus::default()
        };
        let statuses = vec![status; request.get_ref().descriptors.len()];
        let overall_code = Code::Ok.into();
        Ok(Response::new(pb::RateLimitResponse { overall_code, statuses, ..Default::default() }))
    }
}
