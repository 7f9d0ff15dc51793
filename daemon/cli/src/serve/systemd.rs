//! What a service manager is told, where one asks for it by `NOTIFY_SOCKET`.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};

/// That it listens, or does so again with a configuration that was read anew.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// That the configuration is read anew, from now until [`ready`].
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        // Without the time systemd would wait for it, and call the reload failed.
        Err(error) => tracing::warn!("systemd is not told of a reload: {error}"),
    }
}

/// That it stops.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Says for ever that it lives, twice as often as is asked, where that is asked. It is said by the
/// tasks that answer requests, so not if they hang.
pub(super) async fn live() {
    let mut within = 0;
    if !sd_notify::watchdog_enabled(false, &mut within) {
        return;
    }
    // The shortest that a ticker takes, for a manager that wants it at once.
    let mut ticks = interval(Duration::from_micros(within / 2).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = send(state) {
        tracing::warn!("systemd is not told {state:?}: {error}");
    }
}

/// A socket that begins with `@` is in no file system: some managers have one, and the library
/// sends to files only.
#[cfg(target_os = "linux")]
fn send(state: &[NotifyState<'_>]) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let socket = std::env::var_os("NOTIFY_SOCKET").unwrap_or_default();
    let Some(name) = socket.as_bytes().strip_prefix(b"@") else {
        return sd_notify::notify(false, state);
    };
    let lines: String = state.iter().map(|state| format!("{state}\n")).collect();
    let manager = SocketAddr::from_abstract_name(name)?;
    UnixDatagram::unbound()?.send_to_addr(lines.as_bytes(), &manager).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn send(state: &[NotifyState<'_>]) -> io::Result<()> {
    sd_notify::notify(false, state)
}
