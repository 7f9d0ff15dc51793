//! A server of HTTP that answers as it is told, whatever is asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Allow,
    /// It is answered, and then the connection is closed in good order.
    AllowAndClose,
    /// Nothing is answered, ever.
    Hold,
    /// The whole server goes away.
    Die,
}

type Tell = dyn Fn(u64) -> Act + Send + Sync;

/// Answers until it is dropped. Probes are answered and not counted.
#[derive(Debug)]
pub(crate) struct Mock {
    pub(crate) port: u16,
    is_gone: Arc<AtomicBool>,
}

impl Mock {
    /// One that asks what to do with each request, by its number from 0 on.
    pub(crate) fn start(tell: impl Fn(u64) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_gone = Arc::new(AtomicBool::new(false));
        let (tell, asked): (Arc<Tell>, _) = (Arc::new(tell), Arc::new(AtomicU64::new(0)));
        let gone = Arc::clone(&is_gone);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if gone.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, gone) = (stream.unwrap(), Arc::clone(&gone));
                let (tell, asked) = (Arc::clone(&tell), Arc::clone(&asked));
                std::thread::spawn(move || serve(&stream, &*tell, &asked, &gone, port));
            }
        });
        Mock { port, is_gone }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        stop(&self.is_gone, self.port);
    }
}

/// Ends the listener, which is at its next connection when it sees that.
fn stop(is_gone: &AtomicBool, port: u16) {
    is_gone.store(true, Ordering::SeqCst);
    drop(TcpStream::connect(("127.0.0.1", port)));
}

fn serve(stream: &TcpStream, tell: &Tell, asked: &AtomicU64, is_gone: &AtomicBool, port: u16) {
    let mut input = BufReader::new(stream);
    while let Some(path) = request(&mut input) {
        let is_probe = path.starts_with("/v1/peek");
        let act = match is_probe {
            true => Act::Allow,
            false => tell(asked.fetch_add(1, Ordering::SeqCst)),
        };
        if act == Act::Die {
            stop(is_gone, port);
        }
        // What is still open when the server is gone goes with it.
        if is_gone.load(Ordering::SeqCst) {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        match act {
            Act::Allow if answer(stream, "").is_ok() => {}
            Act::Hold => {}
            Act::AllowAndClose => {
                let _ = answer(stream, "connection: close\r\n");
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            _ => return,
        }
    }
}

/// Reads a request; its path.
fn request(input: &mut impl BufRead) -> Option<String> {
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

fn answer(mut stream: &TcpStream, header: &str) -> std::io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (whole, part) = (now.as_secs(), now.subsec_micros());
    let body = format!(
        "{{\"allowed\":true,\"reason\":\"limit\",\"degraded\":false,\"time\":{whole}.{part:06},\
         \"delay\":0,\"limits\":[]}}"
    );
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\n{header}content-length: {length}\r\n\r\n{body}")
}
