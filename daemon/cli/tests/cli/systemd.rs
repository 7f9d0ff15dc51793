//! Notifications to a service manager.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tollgate_testkit::Folder;

use crate::process::{Daemon, HTTP_ONLY, tollgate};

const WATCHDOG: &str = "WATCHDOG=1\n";

/// Receives the next message other than the watchdog's.
fn next_status(socket: &UnixDatagram) -> String {
    loop {
        let message = next_message(socket);
        if message != WATCHDOG {
            return message;
        }
    }
}

fn next_message(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1_024];
    let length = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

/// An abstract socket with this name.
#[cfg(target_os = "linux")]
fn bind_abstract(name: &str) -> Option<UnixDatagram> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let address = SocketAddr::from_abstract_name(name).unwrap();
    Some(UnixDatagram::bind_addr(&address).unwrap())
}

#[cfg(not(target_os = "linux"))]
fn bind_abstract(_: &str) -> Option<UnixDatagram> {
    None
}

#[test]
fn service_manager_is_notified_of_start_and_stop() {
    let folder = Folder::create();
    let (path, name) = (folder.join("notify"), format!("tollgate-{}", std::process::id()));
    let sockets = [
        (path.display().to_string(), Some(UnixDatagram::bind(&path).unwrap())),
        (format!("@{name}"), bind_abstract(&name)),
    ];
    for (address, socket) in sockets {
        let Some(socket) = socket else { continue };
        let daemon = Daemon::start_with(|command| command.env("NOTIFY_SOCKET", &address), ["1/s"]);
        assert_eq!(next_message(&socket).lines().next(), Some("READY=1"));
        daemon.stop();
        assert_eq!(next_message(&socket).lines().next(), Some("STOPPING=1"));
    }
}

#[test]
fn service_manager_is_notified_of_start_reload_watchdog_and_stop() {
    let folder = Folder::create();
    let path = folder.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    // Longer than any message takes on a busy machine.
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // `WATCHDOG_PID` must be the process id of the daemon, which replaces the shell.
    let mut command = Command::new("sh");
    command.args(["-c", "WATCHDOG_PID=$$ exec \"$0\" \"$@\""]).arg(tollgate().get_program());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000").stdin(Stdio::null());
    command.args(["serve", "10/s"]).args(HTTP_ONLY);
    let daemon = Daemon::spawn(&mut command);
    assert_eq!(next_message(&socket), "READY=1\n");
    for _ in 0..3 {
        assert_eq!(next_message(&socket), WATCHDOG);
    }
    daemon.signal(Signal::HUP);
    let reloading = next_status(&socket);
    let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(since.trim().parse::<u64>().unwrap() > 0, "{reloading}");
    assert_eq!(next_status(&socket), "READY=1\n");
    daemon.signal(Signal::INT);
    assert_eq!(next_status(&socket), "STOPPING=1\n");
    assert_eq!(daemon.wait(), Some(0));
}
