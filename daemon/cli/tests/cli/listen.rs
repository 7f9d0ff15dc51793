//! Listeners other than plain TCP, and the commands that the greeting prints for them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use tollgate_testkit::Folder;

use crate::process::{Daemon, output, tollgate};

/// Runs the last command of the greeting, which needs curl.
fn assert_printed_command_gets_a_response(daemon: &Daemon) {
    let command = daemon.greeting.lines().next_back().unwrap();
    let (code, response, error) = output(Command::new("sh").args(["-c", command]), b"");
    assert_eq!(code, 0, "{command}: {error}");
    assert!(response.contains(" 200"), "{command}: {response}");
}

#[test]
fn printed_command_uses_a_unix_socket() {
    let folder = Folder::create();
    let path = folder.join("http.sock");
    let address = format!("unix:{}", path.display());
    let mut command = tollgate();
    command.args(["serve", "10/s", "--http", &address, "--metrics", "127.0.0.1:0"]);
    let daemon = Daemon::spawn(command.args(["--grpc", "off", "--resp", "off"]));
    assert!(daemon.greeting.contains(&format!("  HTTP/1.1, HTTP/2  {address}\n")));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert_printed_command_gets_a_response(&daemon);
    daemon.stop();
    assert!(!path.exists());
}

#[test]
fn printed_command_uses_tls() {
    let folder = Folder::create();
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let cert = folder.write("cert.pem", generated.cert.pem());
    let key = folder.write("key.pem", generated.signing_key.serialize_pem());
    let yaml = format!(
        "listen: {{ tls: {{ cert: {}, key: {} }} }}\n\
         policies: {{ default: {{ limits: [10/s] }} }}\n",
        cert.display(),
        key.display()
    );
    let daemon = Daemon::with_config(&yaml, |command| command);
    assert!(daemon.url.starts_with("https://127.0.0.1:"), "{}", daemon.greeting);
    assert_printed_command_gets_a_response(&daemon);
    daemon.stop();
}
