//! Who is asked.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use bench::process::{self, Pinned};
use tollgate_testkit::Port;

use crate::constant;

/// A server on the core of servers.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) name: &'static str,
    pub(crate) port: Port,
    process: Pinned,
}

impl Served {
    fn start(name: &'static str, command: impl FnOnce(u16) -> Command) -> Result<Self> {
        let port = Port::reserve();
        let process = Pinned::start(&command(port.number()))?;
        let address = (Ipv4Addr::LOCALHOST, port.number());
        process::wait(&format!("{name} does not listen"), || TcpStream::connect(address).is_ok())?;
        Ok(Served { name, port, process })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

/// A file beside this one.
macro_rules! file {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/benches/grpc/", $name)
    };
}

/// Ours first.
pub(crate) fn all() -> Result<Vec<Served>> {
    let tollgate = process::tollgate()?;
    let mut all = vec![Served::start("tollgate", |port| {
        let mut command = Command::new(tollgate);
        command.args(["serve", "--config", file!("tollgate.yaml"), "--http", "off"]);
        command.args(["--resp", "off", "--metrics", "127.0.0.1:0"]);
        command.args(["--grpc", &format!("127.0.0.1:{port}")]);
        command
    })?];
    if let Some(limitador) = limitador() {
        // It has its interface of HTTP in any case.
        let http = Port::reserve();
        all.push(Served::start("limitador, in memory", |port| {
            let mut command = Command::new(limitador);
            command.args(["--rls-ip", "127.0.0.1", "--rls-port", &port.to_string()]);
            command.args(["--http-ip", "127.0.0.1", "--http-port", &http.number().to_string()]);
            command.arg(file!("limitador.yaml"));
            // By default it remembers a thousand keys.
            command.args(["memory", "--cache", "1000000"]);
            command
        })?);
    }
    let here = std::env::current_exe()?;
    all.push(Served::start("tonic, a constant", |port| {
        let mut command = Command::new(here);
        command.args([constant::FLAG, &port.to_string()]);
        command
    })?);
    Ok(all)
}

/// `LIMITADOR`, or what is on the path.
fn limitador() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LIMITADOR").filter(|var_os| !var_os.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|split_path| split_path.join("limitador-server"))
        .find(|join| join.is_file())
}
