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

/// A request that an [`Upstream`] received.
#[derive(Clone, Debug)]
pub struct UpstreamRequest {
    /// Such as `POST`.
    pub method: String,
    /// Path and query, unchanged.
    pub uri: String,
    /// All headers, repeated ones included.
    pub headers: HeaderMap,
    /// The complete body.
    pub body: Vec<u8>,
}

/// An HTTP server that records each request and responds with 200 and `reached METHOD URI`, or with
/// status NNN for the path `/status/NNN`. Stops on drop.
#[derive(Debug)]
pub struct Upstream {
    received: Arc<Mutex<Vec<UpstreamRequest>>>,
    port: Port,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Starts the server.
    #[track_caller]
    pub fn start() -> Self {
        let received = Arc::new(Mutex::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.expect("the runtime starts");
        // Another process may take the port between the reservation and the bind.
        let bound = (0..ATTEMPTS).find_map(|_| {
            let port = Port::reserve();
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number()));
            runtime.block_on(listener).ok().map(|listener| (port, listener))
        });
        let (port, listener) = bound.expect("a reserved port is free");
        let requests = Arc::clone(&received);
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                // `stopped` completes when the sender is dropped.
                tokio::select! { _ = stopped => {}, () = serve(listener, requests) => {} }
            });
        });
        Self { received, port, stop: Some(stop), thread: Some(thread) }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// Removes and returns the recorded requests.
    pub fn take(&self) -> Vec<UpstreamRequest> {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *received)
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

async fn serve(listener: TcpListener, received: Arc<Mutex<Vec<UpstreamRequest>>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let received = Arc::clone(&received);
        let service = service_fn(move |request| respond(request, Arc::clone(&received)));
        let mut builder = http1::Builder::new();
        // More than the daemon and the gateways accept, so that every forwarded request is recorded.
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD_LEN);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        // The gateway reports broken connections to its client.
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn respond(
    request: Request<Incoming>,
    received: Arc<Mutex<Vec<UpstreamRequest>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(error) => error.to_string().into_bytes(),
    };
    let text = format!("reached {} {}", head.method, head.uri);
    let status = head.uri.path().strip_prefix("/status/").and_then(|path| path.parse().ok());
    let request = UpstreamRequest {
        method: head.method.to_string(),
        uri: head.uri.to_string(),
        headers: head.headers,
        body,
    };
    received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let mut response = Response::new(Full::new(Bytes::from(text)));
    // Other paths name no status.
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    Ok(response)
}
