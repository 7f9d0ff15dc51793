//! Binding of listeners, with errors that name the flag.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Result, anyhow, ensure};
use tokio::net::{TcpListener, lookup_host};
use tollgate_daemon::{Address, Listen, Listener, Listeners, Tls};

/// Binds all listeners. `has_admin_address` is whether that address was chosen.
pub(super) async fn bind(
    listen: &Listen,
    has_admin_address: bool,
    tls: Option<&Tls>,
) -> Result<Listeners> {
    let addresses = [&listen.http, &listen.grpc, &listen.resp, &listen.metrics, &listen.admin];
    let http = bind_at(&listen.http, "--http", &addresses).await?;
    let grpc = bind_at(&listen.grpc, "--grpc", &addresses).await?;
    let resp = bind_at(&listen.resp, "--resp", &addresses).await?;
    let metrics = bind_at(&listen.metrics, "--metrics", &addresses).await?;
    ensure!(
        [&http, &grpc, &resp, &metrics].into_iter().any(Option::is_some),
        "every listener is off; set an address with --http"
    );
    let admin = match &listen.admin {
        Address::Tcp(address) if !has_admin_address => bind_default_admin(address).await?,
        chosen => bind_at(chosen, "--admin", &addresses).await?,
    };
    let with_tls = |listener: Listener| listener.with_tls(tls.cloned());
    Ok(Listeners {
        http: http.map(with_tls),
        grpc: grpc.map(with_tls),
        resp: resp.map(with_tls),
        metrics: metrics.map(with_tls),
        admin: admin.map(with_tls),
        debug: None,
    })
}

/// Binds the default address of the dashboard, unless another program uses it: it is that of
/// Prometheus, and no reason not to decide.
async fn bind_default_admin(address: &str) -> Result<Option<Listener>> {
    match listen(address).await {
        Ok(listener) => Ok(Some(listener.into())),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let remedy = "set another address with --admin or listen.admin, or off";
            tracing::warn!("no dashboard: {address} is in use by another program; {remedy}");
            Ok(None)
        }
        Err(error) => Err(cannot_listen(address, &error, "--admin")),
    }
}

/// Binds the listener of a flag or variable. An error suggests none of the daemon's own addresses.
pub(crate) async fn bind_at(
    address: &Address,
    flag: &str,
    addresses: &[&Address],
) -> Result<Option<Listener>> {
    match address {
        Address::Off => Ok(None),
        Address::Tcp(address) => Ok(Some(bind_tcp(address, flag, addresses).await?.into())),
        Address::Unix(path) => {
            let bound = Listener::bind_unix(path).await;
            let hint = |taken| if taken { ", or set another with" } else { "; it is set by" };
            bound.map(Some).map_err(|error| anyhow!("{error}{} {flag}", hint(error.is_taken())))
        }
    }
}

async fn bind_tcp(address: &str, flag: &str, addresses: &[&Address]) -> Result<TcpListener> {
    match listen(address).await {
        Ok(value) => Ok(value),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let ports = addresses.iter().filter_map(|address| port(address)).collect::<Vec<_>>();
            Err(match find_free(address, &ports).await {
                Some(free) => anyhow!(
                    "{address} is in use by another program; stop it, or set another address: \
                     {flag} {free}"
                ),
                None => anyhow!(
                    "{address} is in use by another program; set another address with {flag}"
                ),
            })
        }
        Err(error) => Err(cannot_listen(address, &error, flag)),
    }
}

fn cannot_listen(address: &str, error: &io::Error, flag: &str) -> anyhow::Error {
    anyhow!("cannot listen at {address}: {error}; set {flag} to a HOST:PORT of this machine")
}

/// Binds an address. Without a host, it binds all addresses, including IPv6 if available.
async fn listen(address: &str) -> io::Result<TcpListener> {
    let port = address.strip_prefix(':').and_then(|address| address.parse::<u16>().ok());
    let Some(port) = port else { return TcpListener::bind(address).await };
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Err(error) if error.kind() != ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        bound => bound,
    }
}

fn port(address: &Address) -> Option<u16> {
    let Address::Tcp(address) = address else { return None };
    address.rsplit_once(':')?.1.parse().ok()
}

/// The next free port of the address, except some ports.
async fn find_free(address: &str, excluded: &[u16]) -> Option<SocketAddr> {
    const MAX_PORTS: u16 = 100;
    let taken = lookup_host(address).await.ok()?.next()?;
    for port in taken.port().saturating_add(1)..=taken.port().saturating_add(MAX_PORTS) {
        let next = SocketAddr::new(taken.ip(), port);
        if !excluded.contains(&port) && TcpListener::bind(next).await.is_ok() {
            return Some(next);
        }
    }
    None
}
