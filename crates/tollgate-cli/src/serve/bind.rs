//! Binding a socket, and what to say where that fails.

use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::{Result, anyhow, bail};
use tokio::net::{TcpListener, lookup_host};
use tollgate_server::Address;

/// Binds the listener that a flag names.
pub(super) async fn bind(flag: &str, address: &Address) -> Result<TcpListener> {
    let Address::Tcp(address) = address else {
        bail!("cannot listen at {address}: name a HOST:PORT of this machine with {flag}");
    };
    match TcpListener::bind(address).await {
        Ok(it) => Ok(it),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(match free(address).await {
            Some(free) => anyhow!(
                "{address} is taken by another program; stop that, or listen elsewhere: \
                 {flag} {free}"
            ),
            None => anyhow!("{address} is taken by another program; listen elsewhere with {flag}"),
        }),
        Err(error) => Err(anyhow!(
            "cannot listen at {address}: {error}; name a HOST:PORT of this machine with {flag}"
        )),
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
