//! The measured servers, and one that returns a constant, to show the cost of tonic itself.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use bench::process::{self, PinnedProcess};
use envoy_types::pb::envoy::service::ratelimit::v3 as pb;
use pb::rate_limit_response::{Code, DescriptorStatus};
use pb::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use tollgate_testkit::Port;
use tonic::{Request, Response, Status};

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) port: Port,
    pub(crate) process: PinnedProcess,
}

impl Server {
    fn start(name: &'static str, command: impl FnOnce(u16) -> Command) -> Result<Self> {
        let port = Port::reserve();
        let process = PinnedProcess::start(&command(port.number()))?;
        let address = (Ipv4Addr::LOCALHOST, port.number());
        process::wait(&format!("{name} does not listen"), || TcpStream::connect(address).is_ok())?;
        Ok(Server { name, port, process })
    }
}

/// The path of a file in this folder.
macro_rules! file {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/benches/grpc/", $name)
    };
}

/// Starts all servers, Tollgate first.
pub(crate) fn start_all() -> Result<Vec<Server>> {
    let tollgate = process::tollgate()?;
    let mut servers = vec![Server::start("tollgate", |port| {
        let mut command = Command::new(tollgate);
        command.args(["serve", "--config", file!("tollgate.yaml"), "--http", "off"]);
        command.args(["--resp", "off", "--admin", "off", "--metrics", "127.0.0.1:0"]);
        command.args(["--grpc", &format!("127.0.0.1:{port}")]);
        command
    })?];
    if let Some(limitador) = limitador() {
        // Its HTTP interface cannot be turned off.
        let http = Port::reserve();
        servers.push(Server::start("limitador, in memory", |port| {
            let mut command = Command::new(limitador);
            command.args(["--rls-ip", "127.0.0.1", "--rls-port", &port.to_string()]);
            command.args(["--http-ip", "127.0.0.1", "--http-port", &http.number().to_string()]);
            command.arg(file!("limitador.yaml"));
            // The default is a thousand keys.
            command.args(["memory", "--cache", "1000000"]);
            command
        })?);
    }
    let here = std::env::current_exe()?;
    servers.push(Server::start("tonic, a constant", |port| {
        let mut command = Command::new(here);
        command.args([CONSTANT_FLAG, &port.to_string()]);
        command
    })?);
    Ok(servers)
}

/// The binary that `LIMITADOR` names, or the one on the path.
fn limitador() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("LIMITADOR").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join("limitador-server"))
        .find(|path| path.is_file())
}

/// Followed by a port, starts this program as the server that returns a constant.
const CONSTANT_FLAG: &str = "--constant";

/// The port after [`CONSTANT_FLAG`], if this program is started with it.
pub(crate) fn constant_port() -> Option<u16> {
    let mut args = std::env::args().skip_while(|arg| arg != CONSTANT_FLAG).skip(1);
    args.next()?.parse().ok()
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
