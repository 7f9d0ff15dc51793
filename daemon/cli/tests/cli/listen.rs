//! Where the daemon listens, and how it says so.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};
use tollgate_testkit::Folder;

use crate::process::{Daemon, tollgate};

#[test]
fn the_printed_command_works_at_a_socket_in_the_file_system() {
    let directory = Folder::create();
    let path = directory.join("http.sock");
    let address = format!("unix:{}", path.display());
    let mut command = tollgate();
    let daemon = Daemon::spawn(command.args([
        "serve",
        "10/s",
        "--http",
        &address,
        "--metrics",
        "127.0.0.1:0",
        "--grpc",
        "off",
        "--resp",
        "off",
    ]));
    assert!(daemon.greeting.contains(&format!("  HTTP/1.1, HTTP/2  {address}\n")));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_pasted_command_is_answered(&daemon);
    daemon.stop();
    assert!(!path.exists());
}

#[test]
fn the_printed_command_works_with_tls() {
    let directory = Folder::create();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let (cert, file) = (directory.join("cert.pem"), directory.join("tollgate.yaml"));
    fs::write(&cert, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
    let shown = directory.display();
    let yaml = format!(
        "listen: {{ tls: {{ cert: {shown}/cert.pem, key: {shown}/key.pem }} }}\n\
         policies: {{ default: {{ limits: [10/s] }} }}\n"
    );
    fs::write(&file, yaml).unwrap();
    let daemon = Daemon::start(["--config", file.to_str().unwrap()]);
    assert!(daemon.url.starts_with("https://127.0.0.1:"), "{}", daemon.greeting);
    assert_pasted_command_is_answered(&daemon);
    daemon.stop();
}

fn assert_pasted_command_is_answered(daemon: &Daemon) {
    let command = daemon.greeting.lines().last().unwrap();
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command} needs curl, and says {output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(" 200"), "{command}: {said}");
}
