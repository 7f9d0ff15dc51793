//! `grpc.reflection`, in both versions: the services, and the files with their messages.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::FileDescriptorProto;
use tokio_stream::StreamExt as _;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use tonic_reflection::pb::v1alpha;

use super::client::channel;
use crate::support::daemon::Daemon;

async fn call(daemon: &Daemon, request: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let mut client = ServerReflectionClient::new(channel(daemon.grpc).await);
    let stream = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
    let response: ServerReflectionResponse = stream.into_inner().next().await.unwrap().unwrap();
    response.message_response.unwrap()
}

async fn file(daemon: &Daemon, request: MessageRequest) -> FileDescriptorProto {
    match call(daemon, request).await {
        MessageResponse::FileDescriptorResponse(files) => {
            FileDescriptorProto::decode(&*files.file_descriptor_proto[0]).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn services_are_listed() {
    let daemon = Daemon::start().await;
    let services = call(&daemon, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(services) = services else { panic!("{services:?}") };
    let names: BTreeSet<_> = services.service.iter().map(|service| &*service.name).collect();
    for name in ["envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"] {
        assert!(names.contains(name), "{names:?}");
    }
    let mut client =
        v1alpha::server_reflection_client::ServerReflectionClient::new(channel(daemon.grpc).await);
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    };
    let stream = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
    assert!(stream.into_inner().next().await.unwrap().is_ok());
}

#[tokio::test]
async fn files_are_served_with_their_dependencies() {
    let daemon = Daemon::start().await;
    let service = "envoy.service.ratelimit.v3.RateLimitService".to_owned();
    let first = file(&daemon, MessageRequest::FileContainingSymbol(service)).await;
    let mut pending = first.dependency.clone();
    let (mut visited, mut messages) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |file: &FileDescriptorProto| {
        for message_type in &file.message_type {
            messages.insert(format!("{}.{}", file.package(), message_type.name()));
        }
    };
    add(&first);
    while let Some(name) = pending.pop() {
        if visited.insert(name.clone()) {
            let file = file(&daemon, MessageRequest::FileByFilename(name)).await;
            add(&file);
            pending.extend(file.dependency);
        }
    }
    for name in [
        "envoy.service.ratelimit.v3.RateLimitRequest",
        "envoy.service.ratelimit.v3.RateLimitResponse",
        "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor",
        "envoy.config.core.v3.HeaderValue",
        "google.protobuf.Struct",
        "google.protobuf.Duration",
        "google.protobuf.UInt64Value",
    ] {
        assert!(messages.contains(name), "{name}: {messages:?}");
    }
}
