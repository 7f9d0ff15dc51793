//! A single server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tollgate_testkit::{Connection, Reply, Server};

#[test]
fn server_replies_at_its_port_and_its_socket() {
    let server = Server::start();
    assert_eq!(server.command(&["SET", "k", "v"]), Reply::ok());
    let mut connection = Connection::to(&server.address()).unwrap();
    assert_eq!(connection.command(&["GET", "k"]).unwrap(), Reply::Bulk(b"v".to_vec()));
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    assert!(server.unix_path().exists());
    assert!(server.log().contains("Ready to accept connections"));
    let info = server.command(&["INFO", "server"]).text();
    assert!(info.contains(&format!("process_id:{}\r\n", server.pid())));
    assert!(server.command(&["NO"]).is_error());
}

#[test]
fn dropped_server_leaves_no_process_and_no_folder() {
    let server = Server::start();
    let (pid, folder) = (server.pid(), server.folder().to_owned());
    assert!(folder.is_dir() && lives(pid));
    drop(server);
    assert!(!folder.exists() && !lives(pid));
}

#[test]
fn configuration_reaches_the_server() {
    let server = Server::with(|config| {
        config
            .line("databases 3")
            .line("maxmemory 67108864")
            .line("enable-protected-configs yes")
            .line("enable-debug-command yes")
            .line("maxmemory-policy noeviction")
    });
    for (name, expected) in
        [("databases", "3"), ("maxmemory", "67108864"), ("maxmemory-policy", "noeviction")]
    {
        assert_eq!(server.command(&["CONFIG", "GET", name]).array()[1].text(), expected, "{name}");
    }
    assert_eq!(server.command(&["DEBUG", "SLEEP", "0"]), Reply::ok());
    let folder = server.folder().to_str().unwrap();
    assert_eq!(server.command(&["CONFIG", "SET", "dir", folder]), Reply::ok());
}

#[test]
fn passwords_and_users_are_required() {
    let server = Server::with(|config| {
        config.password("secret").user("alice on >wonder ~tg:* resetchannels -@all +get +ping")
    });
    assert_eq!(server.url(), format!("redis://:secret@127.0.0.1:{}", server.port()));
    assert!(server.url_as("alice", "wonder").contains("alice:wonder@127.0.0.1"));
    // The testkit's own commands still have all permissions.
    assert_eq!(server.command(&["SET", "k", "v"]), Reply::ok());

    let mut connection = Connection::to(&server.address()).unwrap();
    assert!(connection.command(&["GET", "k"]).unwrap().text().starts_with("NOAUTH"));
    assert_eq!(connection.command(&["AUTH", "secret"]).unwrap(), Reply::ok());
    assert_eq!(connection.command(&["GET", "k"]).unwrap().text(), "v");
    assert_eq!(connection.command(&["AUTH", "alice", "wonder"]).unwrap(), Reply::ok());
    assert!(connection.command(&["GET", "k"]).unwrap().text().starts_with("NOPERM"));
    assert_eq!(connection.command(&["GET", "tg:k"]).unwrap(), Reply::Null);
}

#[test]
fn paused_server_replies_after_resume() {
    let server = Server::start();
    let mut connection = server.connect();
    server.pause();
    assert!(server.is_running() && !server.is_serving());
    connection.send(&["PING"]).unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            server.resume();
        });
        assert_eq!(connection.receive().unwrap().text(), "PONG");
    });
    assert!(started.elapsed() >= Duration::from_millis(100));
    // A paused server can be killed.
    server.pause();
    server.kill();
    assert!(!server.is_running());
}

#[test]
fn killed_server_restarts_at_the_same_port() {
    let server = Server::with(|config| config.line("appendonly yes"));
    server.command(&["SET", "kept", "1"]);
    let (port, pid) = (server.port(), server.pid());
    server.kill();
    assert!(!server.is_running() && !lives(pid));
    assert!(Connection::to(&server.address()).is_err());
    server.restart();
    assert_eq!((server.port(), server.command(&["GET", "kept"]).text().as_str()), (port, "1"));
    assert_ne!(server.pid(), pid);

    let forgetful = Server::start();
    forgetful.command(&["SET", "lost", "1"]);
    forgetful.restart();
    assert_eq!(forgetful.command(&["GET", "lost"]), Reply::Null);
}

#[test]
fn server_that_does_not_start_panics_with_its_log() {
    let panic = std::panic::catch_unwind(|| Server::with(|config| config.line("no-such-line 1")));
    let message = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("exited") && message.contains("no-such-line"), "{message}");
}

#[test]
fn sweep_covers_all_databases_and_lists_keys_without_ttl() {
    let server = Server::start();
    let mut connection = server.connect();
    for words in [
        &["SET", "tg:short", "1", "PX", "50000"][..],
        &["SET", "tg:long", "1", "PX", "90000"],
        &["SET", "other", "1"],
        &["SELECT", "5"],
        &["SET", "tg:*[forever]", "1"],
    ] {
        connection.command(words).unwrap();
    }
    assert_eq!(server.keys("tg:"), ["tg:*[forever]", "tg:long", "tg:short"]);
    assert_eq!(server.keys_without_ttl("tg:"), ["tg:*[forever]"]);
    assert_eq!(server.keys_without_ttl("tg:*"), ["tg:*[forever]"]);
    let sweep = server.sweep("tg:");
    let longest = sweep.max_ttl().unwrap();
    assert!(longest <= Duration::from_secs(90) && longest > Duration::from_secs(60));
    server.sweep("tg:l").assert_all_expire_within(Duration::from_secs(90));
    let wrong = std::panic::catch_unwind(|| sweep.assert_all_expire_within(Duration::MAX));
    assert!(wrong.is_err());
}

/// Set in the child process that the next test kills.
const ORPHANER: &str = "TOLLGATE_SERVERS_ORPHANER";

#[test]
fn server_ends_with_the_process_of_its_test() {
    const NAME: &str = "standalone::server_ends_with_the_process_of_its_test";
    if env::var_os(ORPHANER).is_some() {
        let server = Server::start();
        server.pause();
        let mut output = std::io::stdout();
        writeln!(output, "\nserver {} {}", server.pid(), server.folder().display()).unwrap();
        output.flush().unwrap();
        loop {
            thread::park();
        }
    }
    let mut test = Command::new(env::current_exe().unwrap());
    test.args([NAME, "--exact", "--nocapture"]).env(ORPHANER, "1").process_group(0);
    let mut test = test.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("server ")).unwrap();
    let mut words = line.split(' ').skip(1);
    let pid = words.next().unwrap().parse().unwrap();
    let folder = PathBuf::from(words.next().unwrap());
    assert!(lives(pid) && folder.exists());

    test.kill().unwrap();
    test.wait().unwrap();
    let started = Instant::now();
    while lives(pid) || folder.exists() {
        assert!(started.elapsed() < Duration::from_secs(10), "{pid} and {folder:?} outlive it");
        thread::sleep(Duration::from_millis(5));
    }
}

fn lives(pid: u32) -> bool {
    // State Z: the process has ended and its parent has not waited for it yet.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
