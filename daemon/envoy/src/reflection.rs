//! `grpc.reflection`: the services and messages, for tools.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic_health::pb::FILE_DESCRIPTOR_SET as HEALTH_DESCRIPTORS;
use tonic_reflection::server::Builder;

/// The descriptors of the rate limit and quota services and their messages; a test keeps them up to date.
const RATE_LIMIT_DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");

type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// One version of the reflection service, built on the first request.
pub(super) struct Reflection(Box<dyn Fn(Request<Incoming>) -> ResponseFuture + Send + Sync>);

#[expect(clippy::expect_used, reason = "the descriptors are constant, and tests build both")]
static V1: LazyLock<Reflection> =
    LazyLock::new(|| Reflection::new(builder().build_v1().expect("valid descriptors")));
#[expect(clippy::expect_used, reason = "the descriptors are constant, and tests build both")]
static V1_ALPHA: LazyLock<Reflection> =
    LazyLock::new(|| Reflection::new(builder().build_v1alpha().expect("valid descriptors")));

fn builder() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(RATE_LIMIT_DESCRIPTORS)
        .register_encoded_file_descriptor_set(HEALTH_DESCRIPTORS)
}

impl Reflection {
    pub(super) fn from_name(name: &str) -> Option<&'static Reflection> {
        match name {
            "grpc.reflection.v1.ServerReflection" => Some(&V1),
            "grpc.reflection.v1alpha.ServerReflection" => Some(&V1_ALPHA),
            _ => None,
        }
    }

    fn new<S>(server: S) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        Reflection(Box::new(move |request| {
            let mut server = server.clone();
            Box::pin(async move {
                let Ok(response) = server.call(request).await;
                response
            })
        }))
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        (self.0)(request).await
    }
}
