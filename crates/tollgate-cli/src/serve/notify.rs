//! Telling the service manager what the daemon is about, as systemd's `Type=notify` asks
//! (`man sd_notify`). Nobody is told where nobody asked.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It serves.
    Ready,
    /// It was told to stop.
    Stopping,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            State::Ready => "READY=1\nSTATUS=serving",
            State::Stopping => "STOPPING=1\nSTATUS=finishing what is under way",
        }
    }
}

/// Tells whoever started it. That they do not listen is no reason to stop.
pub(super) fn tell(state: State) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET").filter(|it| !it.is_empty()) else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!("NOTIFY_SOCKET {socket:?} does not take {:?}: {error}", state.as_str());
    }
}

fn send(socket: &OsStr, state: State) -> io::Result<()> {
    let address = address(socket)?;
    let sender = UnixDatagram::unbound()?;
    sender.send_to_addr(state.as_str().as_bytes(), &address).map(drop)
}

/// A path, or with `@` in front a name that has no file.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(io::Error::from(io::ErrorKind::Unsupported)),
        None => SocketAddr::from_pathname(socket),
    }
}
