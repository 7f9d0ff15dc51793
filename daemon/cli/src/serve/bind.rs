//! Binding the sockets, and what to say where that fails.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Result, anyhow, ensure};
use tokio::net::{TcpListener, lookup_host};
use tollgate_server::{Address, Listen, Listener, Listeners, Tls};

/// Binds all that is listened at.
pub(super) async fn bind(listen: &Listen, tls: Option<&Tls>) -> Result<Listeners> {
    let http = bind_at(&listen.http, "--http").await?;
    let grpc = bind_at(&listen.grpc, "--grpc").await?;
    let resp = bind_at(&listen.resp, "--resp").await?;
    let metrics = bind_at(&listen.metrics, "--metrics").await?;
    ensure!(
        [&http, &grpc, &resp, &metrics].into_iter().any(Option::is_some),
        "every listener is off, so nobody could ask anything; name an address with --http"
    );
    let with_tls = |listener: Listener| listener.with_tls(tls.cloned());
    Ok(Listeners {
        http: http.map(with_tls),
        grpc: grpc.map(with_tls),
        resp: resp.map(with_tls),
        metrics: metrics.map(with_tls),
        debug: None,
    })
}

/// Binds one, which is said by this.
pub(crate) async fn bind_at(address: &Address, flag: &str) -> Result<Option<Listener>> {
    match address {
        Address::Off => Ok(None),
        Address::Tcp(address) => Ok(Some(bind_tcp(address, flag).await?.into())),
        Address::Unix(path) => {
            let bound = Listener::bind_unix(path).await;
            let hint = |taken| if taken { ", or listen elsewhere with" } else { "; it is said by" };
            bound.map(Some).map_err(|error| anyhow!("{error}{} {flag}", hint(error.is_taken())))
        }
    }
}

async fn bind_tcp(address: &str, flag: &str) -> Result<TcpListener> {
    match listen(address).await {
        Ok(value) => Ok(value),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(match free(address).await {
            Some(free) => anyhow!(
                "{address} is taken by another program; stop that, or listen elsewhere: \
                 {flag} {free}"
            ),
            None => {
                anyhow!("{address} is taken by another program; listen elsewhere with {flag}")
            }
        }),
        Err(error) => Err(anyhow!(
            "cannot listen at {address}: {error}; name a HOST:PORT of this machine with {flag}"
        )),
    }
}

/// Where no host is named that is all of them, of IPv6 as well if the machine has it.
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

/// The next address that is free.
async fn free(address: &str) -> Option<SocketAddr> {
    const TRIED: u16 = 100;
    let taken = lookup_host(address).await.ok()?.next()?;
    for port in taken.port().saturating_add(1)..=taken.port().saturating_add(TRIED) {
        let next = SocketAddr::new(taken.ip(), port);
        if TcpListener::bind(next).await.is_ok() {
            return Some(next);
        }
    }
    None
}
