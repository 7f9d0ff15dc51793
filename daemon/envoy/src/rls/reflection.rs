//! `grpc.reflection`: the services and messages, for tools.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic_health::pb::FILE_DESCRIPTOR_SET as OF_HEALTH;
use tonic_reflection::server::Builder;

/// The descriptors of the rate limit service and its messages; a test keeps them up to date.
const OF_RATE_LIMIT: &[u8] = include_bytes!("descriptors.bin");

const V1: &str = "grpc.reflection.v1.ServerReflection";
const V1_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// One version of the reflection service.
pub(super) struct Reflection(Box<dyn Fn(Request<Incoming>) -> Answering + Send + Sync>);

/// Both versions, built on the first request.
static AS_V1: LazyLock<Reflection> = LazyLock::new(|| match described().build_v1() {
    Ok(server) => Reflection::new(move |request| {
        let mut server = server.clone();
        Box::pin(async move { infallible(server.call(request).await) })
    }),
    Err(error) => Reflection::broken(error.to_string()),
});
static AS_V1_ALPHA: LazyLock<Reflection> = LazyLock::new(|| match described().build_v1alpha() {
    Ok(server) => Reflection::new(move |request| {
        let mut server = server.clone();
        Box::pin(async move { infallible(server.call(request).await) })
    }),
    Err(error) => Reflection::broken(error.to_string()),
});

/// The response of a service that cannot fail.
fn infallible(result: Result<Response<Body>, Infallible>) -> Response<Body> {
    match result {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn described() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(OF_RATE_LIMIT)
        .register_encoded_file_descriptor_set(OF_HEALTH)
}

impl Reflection {
    /// The version of this name.
    pub(super) fn of_name(name: &str) -> Option<&'static Reflection> {
        match name {
            V1 => Some(&AS_V1),
            V1_ALPHA => Some(&AS_V1_ALPHA),
            _ => None,
        }
    }

    fn new(answer: impl Fn(Request<Incoming>) -> Answering + Send + Sync + 'static) -> Self {
        Reflection(Box::new(answer))
    }

    fn broken(error: String) -> Self {
        Reflection::new(move |_| {
            let reply = Status::internal(error.clone()).into_http();
            Box::pin(async move { reply })
        })
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        (self.0)(request).await
    }
}
