//! `ShouldRateLimit` over HTTP/2, several requests under way on each connection.

mod message;

use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{SendRequest, handshake};
use http::{HeaderMap, Method, Request as HttpRequest, Version};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::timeout;

use self::message::{Request, response};
use crate::alarm::Alarm;
use crate::answer::{Answer, ErrorKind};
use crate::connection::{Attempts, Ended};
use crate::keys::Keys;
use crate::plan::{LimitedBy, Peer, Question};
use crate::tally::Asked;
use crate::worker::Worker;

const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// How a daemon is asked over gRPC.
#[derive(Clone, Debug)]
pub(crate) struct Grpc {
    uri: String,
    token: Option<String>,
    check: Request,
    probe: Request,
}

/// Why there was no answer.
type Failed = (ErrorKind, String);

/// What came of one call.
type Called = Result<message::Response, Failed>;

impl Grpc {
    pub(crate) fn new(peer: &Peer, question: &Question, keys: &Keys) -> Self {
        let domain = match &question.limited_by {
            LimitedBy::Policy(policy) | LimitedBy::Limits(policy) => policy,
        };
        let request = |hits| Request::new(domain, &keys.prefix, keys.width(), hits);
        Grpc {
            uri: format!("http://{}{PATH}", peer.address()),
            token: peer.password.as_ref().map(|password| format!("Bearer {password}")),
            check: request(question.cost),
            probe: request(0),
        }
    }

    /// Asks without charging; whether anything is limited.
    pub(crate) async fn probe(
        &self,
        stream: TcpStream,
        patience: Duration,
    ) -> Result<bool, Failed> {
        let sender = open(Ok(stream)).await?;
        let called = self.call(&sender, self.probe.of(0), patience).await?;
        Ok(called.is_limited)
    }

    async fn call(&self, sender: &SendRequest<Bytes>, body: Vec<u8>, patience: Duration) -> Called {
        match timeout(patience, self.exchange(sender.clone(), body)).await {
            Ok(called) => called,
            Err(_) => Err((ErrorKind::Timeout, "no answer came within --timeout".to_owned())),
        }
    }

    async fn exchange(&self, sender: SendRequest<Bytes>, body: Vec<u8>) -> Called {
        let mut sender = sender.ready().await.map_err(|error| lost(&error))?;
        let request = self.request().map_err(|error| (ErrorKind::Protocol, error.to_string()))?;
        let (answer, mut stream) =
            sender.send_request(request, false).map_err(|error| lost(&error))?;
        stream.send_data(Bytes::from(body), true).map_err(|error| lost(&error))?;
        let (head, mut body) = answer.await.map_err(|error| lost(&error))?.into_parts();
        let mut message = Vec::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(|error| lost(&error))?;
            body.flow_control().release_capacity(chunk.len()).map_err(|error| lost(&error))?;
            if message.len() + chunk.len() > MAX_MESSAGE {
                return Err((ErrorKind::Protocol, "the message is too long".to_owned()));
            }
            message.extend_from_slice(&chunk);
        }
        let trailers = body.trailers().await.map_err(|error| lost(&error))?.unwrap_or_default();
        status(&head, &trailers)?;
        let none = || (ErrorKind::Protocol, "the message is no RateLimitResponse".to_owned());
        response(&message).ok_or_else(none)
    }

    fn request(&self) -> Result<HttpRequest<()>, http::Error> {
        let mut request = HttpRequest::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(&self.uri)
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = &self.token {
            request = request.header("authorization", token);
        }
        request.body(())
    }
}

const MAX_MESSAGE: usize = 1024 * 1024;

/// An error if the status of gRPC, in the trailers or without a message in the head, is none of
/// success.
fn status(head: &http::response::Parts, trailers: &HeaderMap) -> Result<(), Failed> {
    let text = |name| {
        let value = trailers.get(name).or_else(|| head.headers.get(name))?;
        value.to_str().ok().map(str::to_owned)
    };
    let code = text("grpc-status");
    let kind = match code.as_deref() {
        Some("0") => return Ok(()),
        // Cancelled, deadline exceeded, resource exhausted, internal, unavailable.
        Some("1" | "4" | "8" | "13" | "14") => ErrorKind::Unavailable,
        Some(_) => ErrorKind::Rejected,
        None if head.status.is_server_error() => ErrorKind::Unavailable,
        None => ErrorKind::Protocol,
    };
    let said = text("grpc-message").unwrap_or_default();
    let code = code.map_or_else(|| head.status.to_string(), |code| format!("grpc-status {code}"));
    Err((kind, format!("{code} {said}").trim_end().to_owned()))
}

fn lost(error: &h2::Error) -> Failed {
    (ErrorKind::Lost, error.to_string())
}

/// Begins a connection, and lets it run until its last sender is gone.
async fn open(stream: io::Result<TcpStream>) -> Result<SendRequest<Bytes>, Failed> {
    let stream = stream.map_err(|error| (ErrorKind::Refused, error.to_string()))?;
    let (sender, connection) = handshake(stream).await.map_err(|error| lost(&error))?;
    // Its error comes to whoever waits for an answer.
    spawn_local(async move { drop(connection.await) });
    Ok(sender)
}

/// Asks over one connection after the other, the first of which is there.
pub(crate) async fn drive(
    worker: &Rc<Worker>,
    grpc: &Rc<Grpc>,
    first: io::Result<TcpStream>,
) -> Ended {
    let (mut attempts, mut stream) = (Attempts::default(), first);
    loop {
        match open(stream).await {
            Ok(sender) if streams(worker, grpc, &sender).await => return Ended::Done,
            Ok(_) => {}
            Err((kind, words)) => worker.failed(kind, 1, || words),
        }
        stream = match attempts.another(worker).await {
            ControlFlow::Continue(another) => another,
            ControlFlow::Break(ended) => return ended,
        };
    }
}

/// Runs as many streams as may be under way; whether there is nothing more to ask.
async fn streams(worker: &Rc<Worker>, grpc: &Rc<Grpc>, sender: &SendRequest<Bytes>) -> bool {
    let is_lost = Rc::new(Cell::new(false));
    let tasks: Vec<_> = (0..worker.pipeline)
        .map(|_| {
            let (worker, grpc) = (Rc::clone(worker), Rc::clone(grpc));
            let (sender, is_lost) = (sender.clone(), Rc::clone(&is_lost));
            spawn_local(async move {
                if !stream(&worker, &grpc, &sender).await {
                    is_lost.set(true);
                }
            })
        })
        .collect();
    for task in tasks {
        // A task that panicked has told so.
        drop(task.await);
    }
    !is_lost.get()
}

/// Asks one after the other; whether it ended for want of something to ask.
async fn stream(worker: &Worker, grpc: &Grpc, sender: &SendRequest<Bytes>) -> bool {
    let mut alarm = Alarm::default();
    while let Some(due) = worker.take() {
        if let Err(error) = alarm.until(&worker.clock, due).await {
            worker.failed(ErrorKind::Refused, 1, || error.to_string());
            return false;
        }
        let (key, sent) = (worker.choose(), worker.clock.now());
        worker.sent();
        match grpc.call(sender, grpc.check.of(key), worker.patience).await {
            Ok(value) => {
                worker.answered(Asked { key, due, sent }, &Answer::plain(value.allowed));
            }
            Err((kind, words)) => {
                worker.failed(kind, 1, || words);
                if kind == ErrorKind::Lost {
                    return false;
                }
            }
        }
    }
    true
}
