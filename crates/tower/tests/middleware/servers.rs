//! Real servers and clients over sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get as route;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tollgate::{Cost, Key, Limiter, MemoryLimiter};
use tollgate_testkit::{Server, wait_until};
use tollgate_tower::{KeyExtractor, RateLimitLayer, Rule};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{Application, api, fetch, policy, redis};

async fn serve_axum(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

fn by_peer(limiter: impl Into<Limiter>, limits: &str) -> RateLimitLayer {
    RateLimitLayer::new(limiter, api(limits), KeyExtractor::peer_address())
}

#[tokio::test]
async fn axum_denies_by_the_address_of_the_peer() {
    let app = Router::new()
        .route("/", route(|| async { "hello" }))
        .layer(by_peer(MemoryLimiter::new(), "2/min burst 2"));
    let address = serve_axum(app).await;
    for remaining in ["1", "0"] {
        let reply = fetch(address, "/", &[]).await;
        assert_eq!((reply.status.as_u16(), &*reply.body), (200, "hello"));
        assert!(reply.header("ratelimit").unwrap().contains(&format!("r={remaining}")));
    }
    let denied = fetch(address, "/", &[("x-forwarded-for", "1.2.3.4")]).await;
    assert_eq!((denied.status.as_u16(), denied.header("retry-after")), (429, Some("30")));
    assert_eq!(denied.header("content-length"), Some(&*denied.body.len().to_string()));
}

/// axum gives each connection and each route a clone of the layer: axum PR #3682 shows 1,500 requests
/// through a cap of 5.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn axum_connections_and_routes_share_the_cap() {
    let server = Server::start();
    for limiter in [MemoryLimiter::new().into(), redis(&server).await] {
        let limiter: Limiter = limiter;
        let app = Router::new()
            .route("/a", route(|| async { "a" }))
            .route("/b", route(|| async { "b" }))
            .layer(by_peer(limiter, "100/h"));
        let address = serve_axum(app).await;
        let requests: Vec<_> = (0..1_000)
            .map(|index| {
                let path = if index % 2 == 0 { "/a" } else { "/b" };
                tokio::spawn(async move { fetch(address, path, &[]).await.status.as_u16() })
            })
            .collect();
        let mut admitted = 0;
        for request in requests {
            admitted += usize::from(request.await.unwrap() == 200);
        }
        assert_eq!(admitted, 100);
    }
}

#[tokio::test]
async fn axum_limits_the_matched_route() {
    let rule = Rule::new(api("1/min"), KeyExtractor::matched_path());
    let layer = RateLimitLayer::with_rules(MemoryLimiter::new(), [rule]);
    let app = Router::new()
        .route("/users/{id}", route(|| async { "user" }))
        .route("/teams/{id}", route(|| async { "team" }))
        .route_layer(layer);
    let address = serve_axum(app).await;
    for (path, status) in [
        ("/users/1", 200),
        ("/users/2", 429),
        ("/teams/1", 200),
        // The layer of the routes does not run for other paths.
        ("/unknown", 404),
    ] {
        assert_eq!(fetch(address, path, &[]).await.status, status, "{path}");
    }
}

/// A plain hyper server, with the address of the peer in the extensions.
async fn serve_hyper(layer: RateLimitLayer, application: Application) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = layer.layer(application);
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.unwrap();
            let service = service.clone().map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(peer);
                request
            });
            tokio::spawn(async move {
                let service = TowerToHyperService::new(service);
                let builder = auto::Builder::new(TokioExecutor::new());
                builder.serve_connection(TokioIo::new(stream), service).await
            });
        }
    });
    address
}

#[tokio::test]
async fn hyper_serves_http_1_and_http_2() {
    let application = Application::default();
    let layer = by_peer(MemoryLimiter::new(), "3/min burst 3");
    let address = serve_hyper(layer, application.clone()).await;
    assert_eq!(fetch(address, "/", &[]).await.status, 200);
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    for (status, retry_after) in [(200, None), (200, None), (429, Some("20"))] {
        let request = Request::get(format!("http://{address}/"));
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let reply = crate::support::Reply::from(sender.send_request(request).await.unwrap()).await;
        assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (status, retry_after));
    }
    let denied = fetch(address, "/", &[]).await;
    assert_eq!(denied.status, 429);
    assert_eq!(application.calls(), 3);
}

/// The response to a HEAD request has the length of the body, but no body.
#[tokio::test]
async fn head_requests_keep_the_connection_usable() {
    let address = serve_hyper(by_peer(MemoryLimiter::new(), "1/min"), Application::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let requests = "HEAD / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2)
        + "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(requests.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let statuses: Vec<_> = text.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    assert_eq!(
        statuses,
        ["HTTP/1.1 200 OK", "HTTP/1.1 429 Too Many Requests", "HTTP/1.1 429 Too Many Requests"]
    );
    assert_eq!(text.matches("violated-policies").count(), 1, "{text}");
}

/// A client that disconnects gives its slot back, before and during the response.
#[tokio::test]
async fn a_client_that_disconnects_releases_its_place() {
    let server = Server::start();
    for limiter in [MemoryLimiter::new().into(), redis(&server).await] {
        let limiter: Limiter = limiter;
        let slots = api("2 concurrent lease 600s");
        let layer = RateLimitLayer::new(limiter.clone(), slots.clone(), KeyExtractor::global());
        let started = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&started);
        let endless = move || {
            count.fetch_add(1, Ordering::SeqCst);
            axum::body::Body::from_stream(tokio_stream::iter(std::iter::repeat_with(|| {
                Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4_096]))
            })))
        };
        let never = Arc::clone(&started);
        let app = Router::new()
            .route("/endless", route(async move || endless()))
            .route(
                "/never",
                route(async move || {
                    never.fetch_add(1, Ordering::SeqCst);
                    std::future::pending::<()>().await;
                }),
            )
            .layer(layer);
        let address = serve_axum(app).await;
        let mut clients = Vec::new();
        for path in ["/never", "/endless"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            clients.push(stream);
        }
        wait_until("both are running", async || started.load(Ordering::SeqCst) == 2).await;
        assert_eq!(fetch(address, "/never", &[]).await.status, 429);
        drop(clients);
        let key = Key::new("global").unwrap();
        wait_until("both slots are free", async || {
            limiter.peek(&slots, key, Cost::ONE).await.remaining == 2
        })
        .await;
    }
}

mod grpc {
    //! A gRPC service with the codec of prost; the messages are those of `google.protobuf`.

    use std::time::Duration;

    use http::uri::PathAndQuery;
    use tonic::codegen::{Body, Service, StdError};
    use tonic::server::{Grpc, NamedService, UnaryService};
    use tonic::transport::{Channel, Endpoint, Server};
    use tonic::{Code, Request, Response, Status};
    use tonic_prost::ProstCodec;

    use super::*;

    const METHOD: &str = "/test.Echo/Call";

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Text {
        #[prost(string, tag = "1")]
        pub(super) text: String,
    }

    /// The service `test.Echo`, whose method fails for the text `fail`.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Echo {
        pub(super) calls: Arc<AtomicUsize>,
    }

    impl NamedService for Echo {
        const NAME: &'static str = "test.Echo";
    }

    impl UnaryService<Text> for Echo {
        type Response = Text;
        type Future = std::future::Ready<Result<Response<Text>, Status>>;

        fn call(&mut self, request: Request<Text>) -> Self::Future {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let text = request.into_inner();
            std::future::ready(match &*text.text {
                "fail" => Err(Status::internal("failed")),
                _ => Ok(Response::new(text)),
            })
        }
    }

    impl<B> Service<http::Request<B>> for Echo
    where
        B: Body<Error: Into<StdError> + Send> + Send + 'static,
    {
        type Response = http::Response<tonic::body::Body>;
        type Error = Infallible;
        type Future = tonic::codegen::BoxFuture<Self::Response, Infallible>;

        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), Infallible>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<B>) -> Self::Future {
            let echo = self.clone();
            Box::pin(async move {
                Ok(Grpc::new(ProstCodec::<Text, Text>::default()).unary(echo, request).await)
            })
        }
    }

    pub(super) struct Client(tonic::client::Grpc<Channel>);

    impl Client {
        pub(super) async fn connect(address: SocketAddr) -> Self {
            let channel = Endpoint::from_shared(format!("http://{address}")).unwrap();
            Client(tonic::client::Grpc::new(channel.connect().await.unwrap()))
        }

        pub(super) async fn call(&mut self, text: &str) -> Result<Response<Text>, Status> {
            self.0.ready().await.unwrap();
            let request = Request::new(Text { text: text.to_owned() });
            let path = PathAndQuery::from_static(METHOD);
            self.0.unary(request, path, ProstCodec::<Text, Text>::default()).await
        }
    }

    /// Serves with a layer around all services, or around the only one.
    pub(super) async fn serve(layer: RateLimitLayer, echo: Echo, around_all: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        tokio::spawn(async move {
            if around_all {
                let server = Server::builder().layer(layer).add_service(echo);
                server.serve_with_incoming(incoming).await
            } else {
                let server = Server::builder().add_service(layer.layer(echo));
                server.serve_with_incoming(incoming).await
            }
        });
        address
    }

    #[tokio::test]
    async fn tonic_clients_get_resource_exhausted_and_the_wait() {
        for around_all in [true, false] {
            let echo = Echo::default();
            let layer = by_peer(MemoryLimiter::new(), "2/min burst 2");
            let address = serve(layer, echo.clone(), around_all).await;
            let mut client = Client::connect(address).await;
            for remaining in ["r=1", "r=0"] {
                let response = client.call("hello").await.unwrap();
                assert_eq!(response.get_ref().text, "hello");
                let limit = response.metadata().get("ratelimit").unwrap().to_str().unwrap();
                assert!(limit.contains(remaining), "{limit}");
            }
            let status = client.call("hello").await.unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted);
            assert!(status.message().starts_with("try again in "), "{status}");
            let details = StatusDetails::decode(status.details()).unwrap();
            assert_eq!((details.code, &*details.message), (8, status.message()));
            let [any] = &details.details[..] else { panic!("{details:?}") };
            assert_eq!(any.type_url, "type.googleapis.com/google.rpc.RetryInfo");
            let wait = RetryInfo::decode(&*any.value).unwrap().retry_delay.unwrap();
            let wait =
                Duration::new(wait.seconds.try_into().unwrap(), wait.nanos.try_into().unwrap());
            assert!(wait <= Duration::from_secs(30) && wait > Duration::from_secs(20), "{wait:?}");
            assert_eq!(echo.calls.load(Ordering::SeqCst), 2);
        }
    }

    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    struct StatusDetails {
        #[prost(int32, tag = "1")]
        code: i32,
        #[prost(string, tag = "2")]
        message: String,
        #[prost(message, repeated, tag = "3")]
        details: Vec<Any>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Any {
        #[prost(string, tag = "1")]
        type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        value: Vec<u8>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct RetryInfo {
        #[prost(message, tag = "1")]
        retry_delay: Option<Wait>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Wait {
        #[prost(int64, tag = "1")]
        seconds: i64,
        #[prost(int32, tag = "2")]
        nanos: i32,
    }

    /// An error of tonic is in the headers, where a function of the response sees it.
    #[tokio::test]
    async fn failures_of_tonic_services_can_be_refunded() {
        let layer = by_peer(MemoryLimiter::new(), "2/min burst 2").refund_if(|response| {
            response.headers.get("grpc-status").is_some_and(|status| status != "0")
        });
        let address = serve(layer, Echo::default(), true).await;
        let mut client = Client::connect(address).await;
        for _ in 0..5 {
            assert_eq!(client.call("fail").await.unwrap_err().code(), Code::Internal);
        }
        for _ in 0..2 {
            client.call("hello").await.unwrap();
        }
        assert_eq!(client.call("fail").await.unwrap_err().code(), Code::ResourceExhausted);
    }

    #[tokio::test]
    async fn tonic_calls_in_flight_are_limited() {
        let layer = RateLimitLayer::new(
            MemoryLimiter::new(),
            policy("slots", "1 concurrent lease 60s"),
            KeyExtractor::global(),
        );
        let address = serve(layer, Echo::default(), true).await;
        let mut client = Client::connect(address).await;
        for _ in 0..100 {
            // The slot is free again when the trailers arrive.
            client.call("hello").await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_error_of_the_inner_service_stays_an_error() {
    let layer = by_peer(MemoryLimiter::new(), "9/min");
    let service = layer.layer(service_fn(|_: Request<()>| async {
        Err::<http::Response<Full<Bytes>>, _>("broken")
    }));
    let mut request = Request::new(());
    request.extensions_mut().insert(SocketAddr::from(([127, 0, 0, 1], 1)));
    assert_eq!(service.oneshot(request).await.unwrap_err(), "broken");
}
