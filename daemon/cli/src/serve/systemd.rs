//! Notifications to the service manager, if `NOTIFY_SOCKET` is set.

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};

/// Reports that the daemon listens, or that a reload is complete.
pub(super) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports a reload, which ends with [`ready`].
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        // Without the time systemd would wait for it and report a failed reload.
        Err(error) => tracing::warn!("cannot notify systemd of a reload: {error}"),
    }
}

/// Reports that the daemon stops.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Sends the watchdog message twice per interval, if the watchdog is enabled. It runs on the
/// runtime of the requests, so that it stops if they hang.
pub(super) async fn live() {
    let mut interval_us = 0;
    if !sd_notify::watchdog_enabled(false, &mut interval_us) {
        return;
    }
    // A ticker needs a positive interval.
    let mut ticks = interval(Duration::from_micros(interval_us / 2).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        notify(&[NotifyState::Watchdog]);
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = send(state) {
        tracing::warn!("cannot notify systemd of {state:?}: {error}");
    }
}

/// A socket that starts with `@` is abstract. Some managers use one, and the library supports paths
/// only.
#[cfg(target_os = "linux")]
fn send(state: &[NotifyState<'_>]) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    // Without the variable, the library does nothing.
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
