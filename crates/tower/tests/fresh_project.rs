//! Follows the README in a new project, as a reader would.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use tollgate_testkit::{Folder, Port, until};

const ADDRESS: &str = "127.0.0.1:3000";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The first block of code in a language.
fn block<'a>(text: &'a str, language: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

fn run(project: &Path, command: &str) {
    let mut words = command.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    // Its own target folder, which later runs reuse.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fresh-project");
    command.args(words).current_dir(project).env("CARGO_TARGET_DIR", target);
    assert!(command.status().unwrap().success(), "{command:?} failed");
}

fn status_and_retry(address: &str) -> (u16, Option<u64>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let retry = text.lines().find_map(|line| line.strip_prefix("retry-after: "));
    (status, retry.map(|seconds| seconds.parse().unwrap()))
}

#[test]
#[ignore = "builds a new project with the default features of axum and tokio; cargo xtask test runs it"]
fn the_example_of_the_readme_denies_the_right_request() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_root.ancestors().nth(2).unwrap();
    let readme = fs::read_to_string(crate_root.join("README.md")).unwrap();
    let folder = Folder::create();
    let project: PathBuf = folder.path().join("app");
    run(folder.path(), "cargo new --quiet --vcs none app");
    for command in block(&readme, "sh").lines() {
        run(&project, &command.replace("../tollgate", root.to_str().unwrap()));
    }
    let port = Port::reserve();
    let address = format!("127.0.0.1:{}", port.number());
    let program = block(&readme, "rust,no_run");
    assert!(program.contains(ADDRESS), "{program}");
    fs::write(project.join("src/main.rs"), program.replace(ADDRESS, &address)).unwrap();
    run(&project, "cargo build --quiet");

    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fresh-project");
    let _running = Running(Command::new(target.join("debug/app")).spawn().unwrap());
    let is_listening = || TcpStream::connect(&address).is_ok().then_some(());
    until(is_listening).expect("the program listens");
    assert_eq!([(); 3].map(|()| status_and_retry(&address).0), [200; 3]);
    let (status, retry_after) = status_and_retry(&address);
    assert_eq!(status, 429);
    // One request every 6 s; the first may be a second ago.
    let retry_after = retry_after.unwrap();
    assert!((5..=6).contains(&retry_after), "{retry_after}");
    sleep(Duration::from_secs(retry_after));
    assert_eq!(status_and_retry(&address).0, 200);
    assert_eq!(status_and_retry(&address).0, 429);
}
