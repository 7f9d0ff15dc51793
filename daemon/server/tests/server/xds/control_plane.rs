//! A control plane that hands each stream to the test.

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

/// The time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// A control plane. Dropping it closes its connections.
#[derive(Debug)]
pub(super) struct ControlPlane {
    pub(super) address: SocketAddr,
    sessions: mpsc::Receiver<Session>,
    serving: JoinHandle<()>,
}

/// A stream that the daemon has opened. Dropping it ends the stream.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) headers: MetadataMap,
    requests: Streaming<DiscoveryRequest>,
    responses: mpsc::Sender<Result<DiscoveryResponse, Status>>,
}

impl ControlPlane {
    pub(super) async fn start() -> Self {
        ControlPlane::start_at("127.0.0.1:0".parse().unwrap(), None).await
    }

    pub(super) async fn start_at(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, sessions) = mpsc::channel(8);
        let serving = tokio::spawn(serve(listener, tls.map(TlsAcceptor::from), Service(sender)));
        ControlPlane { address, sessions, serving }
    }

    /// Waits for the next stream.
    pub(super) async fn session(&mut self) -> Session {
        timeout(TIMEOUT, self.sessions.recv()).await.unwrap().unwrap()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Session {
    /// Waits for the next request of the daemon.
    pub(super) async fn request(&mut self) -> DiscoveryRequest {
        let request = timeout(TIMEOUT, self.requests.message()).await;
        request.unwrap().unwrap().unwrap()
    }

    /// Sends a version that consists of these resources.
    pub(super) async fn push(&self, version: &str, resources: Vec<Any>) {
        self.respond(DiscoveryResponse {
            version_info: version.to_owned(),
            resources,
            type_url: TYPE_URL.to_owned(),
            nonce: nonce(version),
            ..DiscoveryResponse::default()
        })
        .await;
    }

    pub(super) async fn respond(&self, response: DiscoveryResponse) {
        self.responses.send(Ok(response)).await.unwrap();
    }

    pub(super) async fn fail(self, status: Status) {
        self.responses.send(Err(status)).await.unwrap();
    }

    /// Sends a version and waits until the daemon acknowledges it.
    pub(super) async fn push_valid(&mut self, version: &str, resources: Vec<Any>) {
        self.push(version, resources).await;
        let request = self.request().await;
        assert_eq!(request.error_detail, None);
        assert_eq!((&*request.version_info, request.response_nonce), (version, nonce(version)));
    }

    /// Sends a version and waits until the daemon rejects it. Returns the reason.
    pub(super) async fn push_invalid(&mut self, version: &str, resources: Vec<Any>) -> String {
        self.push(version, resources).await;
        let request = self.request().await;
        assert_eq!(request.response_nonce, nonce(version));
        assert_ne!(request.version_info, version);
        request.error_detail.unwrap().message
    }
}

fn nonce(version: &str) -> String {
    format!("nonce of {version}")
}

/// Wraps a message as a resource of the requested type.
pub(super) fn resource(message: &impl Message) -> Any {
    Any { type_url: TYPE_URL.to_owned(), value: message.encode_to_vec() }
}

/// Accepts connections; dropping the future closes them.
async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, service: Service) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, service) = (tls.clone(), service.clone());
        connections.spawn(async move {
            match tls {
                None => serve_one(stream, service).await,
                // After a failed handshake, the client reports the error.
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
    // The tests check how the daemon reacts to the end.
    let _ = serving.serve_connection(TokioIo::new(stream), service).await;
}

#[derive(Clone, Debug)]
struct Service(mpsc::Sender<Session>);

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl AggregatedDiscoveryService for Service {
    type StreamAggregatedResourcesStream = ResponseStream<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = ResponseStream<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let (headers, _, requests) = request.into_parts();
        let (responses, stream) = mpsc::channel(8);
        let session = Session { headers, requests, responses };
        self.0.send(session).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn delta_aggregated_resources(
        &self,
        _: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        Err(Status::unimplemented("not implemented by this test server"))
    }
}
