//! An HTTP server that reacts to requests as the test decides.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How the server reacts to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    /// Allows the request and announces that it closes the connection.
    AllowAndClose,
    /// Never responds.
    Hold,
    /// Stops the whole server.
    Die,
}

type Script = dyn Fn(u64) -> Action + Send + Sync;

/// Responds until it is dropped. Probes are allowed and not counted.
#[derive(Debug)]
pub(crate) struct Mock {
    pub(crate) port: u16,
    is_stopped: Arc<AtomicBool>,
}

impl Mock {
    /// Starts a server that calls `script` with the number of each request, from 0.
    pub(crate) fn start(script: impl Fn(u64) -> Action + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (script, count): (Arc<Script>, _) = (Arc::new(script), Arc::new(AtomicU64::new(0)));
        let stopped = Arc::clone(&is_stopped);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, stopped) = (stream.unwrap(), Arc::clone(&stopped));
                let (script, count) = (Arc::clone(&script), Arc::clone(&count));
                std::thread::spawn(move || serve(&stream, &*script, &count, &stopped, port));
            }
        });
        Mock { port, is_stopped }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        stop(&self.is_stopped, self.port);
    }
}

/// Stops the listener, which checks the flag when it accepts a connection.
fn stop(is_stopped: &AtomicBool, port: u16) {
    is_stopped.store(true, Ordering::SeqCst);
    drop(TcpStream::connect(("127.0.0.1", port)));
}

fn serve(
    stream: &TcpStream,
    script: &Script,
    count: &AtomicU64,
    is_stopped: &AtomicBool,
    port: u16,
) {
    let mut input = BufReader::new(stream);
    while let Some(path) = read_request(&mut input) {
        let action = match path.starts_with("/v1/peek") {
            true => Action::Allow,
            false => script(count.fetch_add(1, Ordering::SeqCst)),
        };
        if action == Action::Die {
            stop(is_stopped, port);
        }
        // Open connections end with the server.
        if is_stopped.load(Ordering::SeqCst) {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        match action {
            Action::Allow if respond(stream, "").is_ok() => {}
            Action::Hold => {}
            Action::AllowAndClose => {
                let _ = respond(stream, "connection: close\r\n");
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            _ => return,
        }
    }
}

/// Reads a request and returns its path.
fn read_request(input: &mut impl BufRead) -> Option<String> {
    let (mut first, mut length) = (String::new(), 0);
    input.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
    }
    input.read_exact(&mut vec![0; length]).ok()?;
    first.split(' ').nth(1).map(str::to_owned)
}

fn respond(mut stream: &TcpStream, header: &str) -> std::io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (whole, part) = (now.as_secs(), now.subsec_micros());
    let body = format!(
        "{{\"allowed\":true,\"reason\":\"limit\",\"degraded\":false,\"time\":{whole}.{part:06},\
         \"delay\":0,\"limits\":[]}}"
    );
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\n{header}content-length: {length}\r\n\r\n{body}")
}
