//! What a service manager is told.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::process::{Daemon, directory, tollgate};

/// The next that is told, but for signs of life.
fn told(socket: &UnixDatagram) -> String {
    loop {
        let text = next(socket);
        if text != "WATCHDOG=1\n" {
            return text;
        }
    }
}

fn next(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1_024];
    let length = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

#[test]
fn it_is_told_of_the_beginning_reloads_signs_of_life_and_the_end() {
    let directory = directory();
    let path = directory.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    // Nothing is waited for so long unless something is wrong.
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // Signs of life are asked of one process, which is named; a shell becomes it.
    let mut command = Command::new("sh");
    command.args(["-c", "WATCHDOG_PID=$$ exec \"$0\" \"$@\""]).arg(tollgate().get_program());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000").stdin(Stdio::null());
    command.args([
        "serve",
        "10/s",
        "--http",
        "127.0.0.1:0",
        "--metrics",
        "off",
        "--grpc",
        "off",
        "--resp",
        "off",
    ]);
    let daemon = Daemon::spawn(&mut command);
    assert_eq!(next(&socket), "READY=1\n");
    for _ in 0..3 {
        assert_eq!(next(&socket), "WATCHDOG=1\n");
    }
    daemon.signal(Signal::HUP);
    let reloading = told(&socket);
    let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(since.trim().parse::<u64>().unwrap() > 0, "{reloading}");
    assert_eq!(told(&socket), "READY=1\n");
    daemon.signal(Signal::INT);
    assert_eq!(told(&socket), "STOPPING=1\n");
    assert_eq!(daemon.ended(), Some(0));
    fs::remove_dir_all(directory).unwrap();
}
