//! `grpc.reflection`, in both versions: what is served, and all that its messages are made of.

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
use crate::daemon::Daemon;

async fn ask(daemon: &Daemon, request: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let mut client = ServerReflectionClient::new(channel(daemon.grpc).await);
    let stream = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
    let answer: ServerReflectionResponse = stream.into_inner().next().await.unwrap().unwrap();
    answer.message_response.unwrap()
}

async fn file(daemon: &Daemon, request: MessageRequest) -> FileDescriptorProto {
    match ask(daemon, request).await {
        MessageResponse::FileDescriptorResponse(file_descriptor_response) => {
            FileDescriptorProto::decode(&*file_descriptor_response.file_descriptor_proto[0])
                .unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_names_what_is_served() {
    let daemon = Daemon::start().await;
    let listed = ask(&daemon, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(listed) = listed else { panic!("{listed:?}") };
    let names: BTreeSet<_> = listed.service.iter().map(|service| &*service.name).collect();
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
async fn each_file_is_there_with_those_that_it_needs() {
    let daemon = Daemon::start().await;
    let service = "envoy.service.ratelimit.v3.RateLimitService".to_owned();
    let first = file(&daemon, MessageRequest::FileContainingSymbol(service)).await;
    let mut ahead = first.dependency.clone();
    let (mut known, mut messages) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |file: &FileDescriptorProto| {
        for message_type in &file.message_type {
            messages.insert(format!("{}.{}", file.package(), message_type.name()));
        }
    };
    add(&first);
    while let Some(name) = ahead.pop() {
        if known.insert(name.clone()) {
            let file = file(&daemon, MessageRequest::FileByFilename(name)).await;
            add(&file);
            ahead.extend(file.dependency);
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
