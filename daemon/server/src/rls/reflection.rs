//! `grpc.reflection`: what is served, for tools that ask.

use std::pin::Pin;
use std::sync::LazyLock;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic_health::pb::FILE_DESCRIPTOR_SET as OF_HEALTH;
use tonic_reflection::server::Builder;

/// The rate limit service, and all messages that it takes or answers; a test renews it.
const OF_RATE_LIMIT: &[u8] = include_bytes!("descriptors.bin");

const V1: &str = "grpc.reflection.v1.ServerReflection";
const V1_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// One version of the service.
pub(super) struct Reflection(Box<dyn Fn(Request<Incoming>) -> Answering + Send + Sync>);

/// Both, of which nothing is built before somebody asks.
static AS_V1: LazyLock<Reflection> = LazyLock::new(|| match described().build_v1() {
    Ok(server) => Reflection::new(move |request| {
        let mut server = server.clone();
        Box::pin(async move { server.call(request).await.unwrap_or_default() })
    }),
    Err(error) => Reflection::broken(error.to_string()),
});
static AS_V1_ALPHA: LazyLock<Reflection> = LazyLock::new(|| match described().build_v1alpha() {
    Ok(server) => Reflection::new(move |request| {
        let mut server = server.clone();
        Box::pin(async move { server.call(request).await.unwrap_or_default() })
    }),
    Err(error) => Reflection::broken(error.to_string()),
});

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

    fn broken(why: String) -> Self {
        Reflection::new(move |_| {
            let reply = Status::internal(why.clone()).into_http();
            Box::pin(async move { reply })
        })
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        (self.0)(request).await
    }
}
