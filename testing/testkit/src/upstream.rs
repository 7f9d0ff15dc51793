//! The application behind a gateway.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::Port;

const ATTEMPTS: usize = 5;
const MAX_HEADERS: usize = 10_000;
const MAX_HEAD_LEN: usize = 16 << 20;

/// A request as it reached an [`Upstream`].
#[derive(Clone, Debug)]
pub struct Reached {
    /// As `POST`.
    pub method: String,
    /// Path and query, unchanged.
    pub uri: String,
    /// All of them, each as often as it came.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
}

/// An HTTP server that answers 200 with `reached METHOD URI` and remembers each request. A path
/// `/status/NNN` is answered with that status. It ends when this is dropped.
#[derive(Debug)]
pub struct Upstream {
    reached: Arc<Mutex<Vec<Reached>>>,
    port: Port,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// If no port is free.
    #[track_caller]
    pub fn start() -> Self {
        let reached = Arc::new(Mutex::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.expect("a runtime is made");
        // Somebody may take a port that was free a moment ago.
        let bound = (0..ATTEMPTS).find_map(|_| {
            let port = Port::reserve();
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number()));
            runtime.block_on(listener).ok().map(|listener| (port, listener))
        });
        let (port, listener) = bound.expect("a reserved port is free");
        let seen = Arc::clone(&reached);
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                // Either ends it: the order, or that nobody is left to give one.
                tokio::select! { _ = stopped => {}, () = serve(listener, seen) => {} }
            });
        });
        Self { reached, port, stop: Some(stop), thread: Some(thread) }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// What has reached it since this was last asked.
    pub fn take(&self) -> Vec<Reached> {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *reached)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed already.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, reached: Arc<Mutex<Vec<Reached>>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let reached = Arc::clone(&reached);
        let service = service_fn(move |request| answer(request, Arc::clone(&reached)));
        let mut builder = http1::Builder::new();
        // More than the daemon takes, and each gateway: whatever is let through is seen here.
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD_LEN);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        // A connection that breaks is the gateway's affair, which its client sees.
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn answer(
    request: Request<Incoming>,
    reached: Arc<Mutex<Vec<Reached>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(error) => error.to_string().into_bytes(),
    };
    let said = format!("reached {} {}", head.method, head.uri);
    let status = head.uri.path().strip_prefix("/status/").and_then(|path| path.parse().ok());
    let value = Reached {
        method: head.method.to_string(),
        uri: head.uri.to_string(),
        headers: head.headers,
        body,
    };
    reached.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    let mut response = Response::new(Full::new(Bytes::from(said)));
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    Ok(response)
}
