//! A control plane that does as the test says: each stream that is begun is handed to it.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::Any;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::Service as _;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

/// Long enough for anything that is not stuck.
const LONG: Duration = Duration::from_secs(30);

pub(super) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// A control plane; it and its connections end when it is dropped.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) address: SocketAddr,
    sessions: mpsc::Receiver<Session>,
    serving: JoinHandle<()>,
}

/// A stream of the daemon's; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) headers: MetadataMap,
    requests: Streaming<DiscoveryRequest>,
    answers: mpsc::Sender<Result<DiscoveryResponse, Status>>,
}

impl Plane {
    pub(super) async fn start() -> Self {
        Plane::start_at("127.0.0.1:0".parse().unwrap(), None).await
    }

    pub(super) async fn start_at(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, sessions) = mpsc::channel(8);
        let serving = tokio::spawn(serve(listener, tls.map(TlsAcceptor::from), Service(begun)));
        Plane { address, sessions, serving }
    }

    /// The next stream that the daemon begins.
    pub(super) async fn session(&mut self) -> Session {
        timeout(LONG, self.sessions.recv()).await.unwrap().unwrap()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Session {
    /// What the daemon says next.
    pub(super) async fn request(&mut self) -> DiscoveryRequest {
        let said = timeout(LONG, self.requests.message()).await;
        said.unwrap().unwrap().unwrap()
    }

    /// Sends resources as a version of all there is.
    pub(super) async fn push(&self, version: &str, resources: Vec<Any>) {
        self.answer(DiscoveryResponse {
            version_info: version.to_owned(),
            resources,
            type_url: TYPE_URL.to_owned(),
            nonce: format!("nonce of {version}"),
            ..DiscoveryResponse::default()
        })
        .await;
    }

    pub(super) async fn answer(&self, answer: DiscoveryResponse) {
        self.answers.send(Ok(answer)).await.unwrap();
    }

    pub(super) async fn fail(self, status: Status) {
        self.answers.send(Err(status)).await.unwrap();
    }

    /// Sends a version and waits until it holds.
    pub(super) async fn push_good(&mut self, version: &str, resources: Vec<Any>) {
        self.push(version, resources).await;
        let said = self.request().await;
        assert_eq!(said.error_detail, None);
        assert_eq!((&*said.version_info, said.response_nonce), (version, nonce(version)));
    }

    /// Sends a version and waits until it is refused. Why it is.
    pub(super) async fn push_bad(&mut self, version: &str, resources: Vec<Any>) -> String {
        self.push(version, resources).await;
        let said = self.request().await;
        assert_eq!(said.response_nonce, nonce(version));
        assert_ne!(said.version_info, version);
        said.error_detail.unwrap().message
    }
}

fn nonce(version: &str) -> String {
    format!("nonce of {version}")
}

/// A resource of the type that is asked for.
pub(super) fn resource(message: &impl Message) -> Any {
    Any { type_url: TYPE_URL.to_owned(), value: message.encode_to_vec() }
}

/// Serves until this is dropped.
async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, service: Service) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, service) = (tls.clone(), service.clone());
        connections.spawn(async move {
            match tls {
                None => serve_one(stream, service).await,
                // Whoever cannot agree on TLS is told so.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve_one(stream, service).await;
                    }
                }
            }
        });
    }
}

async fn serve_one(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: Service) {
    let service = AggregatedDiscoveryServiceServer::new(service);
    let service = service_fn(move |request| service.clone().call(request));
    let serving = http2::Builder::new(TokioExecutor::new());
    // However it ends, the daemon is asked what it makes of that.
    let _ = serving.serve_connection(TokioIo::new(stream), service).await;
}

#[derive(Clone, Debug)]
struct Service(mpsc::Sender<Session>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Service {
    type StreamAggregatedResourcesStream = Answers<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Answers<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let (headers, _, requests) = request.into_parts();
        let (answers, stream) = mpsc::channel(8);
        let session = Session { headers, requests, answers };
        self.0.send(session).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("it is not asked for"))
    }
}
