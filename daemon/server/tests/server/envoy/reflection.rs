//! `grpc.reflection`, in both versions: the services, and the files with their messages, which are
//! a subset of the descriptors of Envoy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message as _;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};
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
    for name in [
        "envoy.service.ratelimit.v3.RateLimitService",
        "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
        "grpc.health.v1.Health",
    ] {
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

const SERVICES: [&str; 2] =
    ["envoy/service/ratelimit/v3/rls.proto", "envoy/service/rate_limit_quota/v3/rlqs.proto"];
const FILE: &str = "../envoy/src/descriptors.bin";

/// The descriptor set that `envoy-types` was generated from.
fn envoy_descriptors() -> FileDescriptorSet {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    let metadata = metadata.arg(manifest).output().unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let envoy = packages.iter().find(|package| package["name"] == "envoy-types").unwrap();
    let manifest = PathBuf::from(envoy["manifest_path"].as_str().unwrap());
    let bytes = std::fs::read(manifest.with_file_name("src/generated/types.bin")).unwrap();
    FileDescriptorSet::decode(&*bytes).unwrap()
}

/// The full names of the messages and enums of a file.
fn names(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    let full = |name: &Option<String>| format!(".{}.{}", file.package(), name.as_ref().unwrap());
    let messages = file.message_type.iter().map(move |message_type| full(&message_type.name));
    messages.chain(file.enum_type.iter().map(move |enum_type| full(&enum_type.name)))
}

fn references(message: &DescriptorProto) -> Vec<String> {
    let own = message.field.iter().filter_map(|field| field.type_name.clone());
    own.chain(message.nested_type.iter().flat_map(references)).collect()
}

/// Removes options that only code generators need, or that other files define.
fn strip_options(message: &mut DescriptorProto) {
    message.options = message.options.take().filter(|option| option.map_entry.is_some());
    message.field.iter_mut().for_each(|field| field.options = None);
    message.oneof_decl.iter_mut().for_each(|oneof_decl| oneof_decl.options = None);
    message.enum_type.iter_mut().for_each(strip_enum_options);
    message.nested_type.iter_mut().for_each(strip_options);
}

fn strip_enum_options(enum_type: &mut EnumDescriptorProto) {
    enum_type.options = None;
    enum_type.value.iter_mut().for_each(|value| value.options = None);
}

/// The services, with the messages that they refer to directly or indirectly.
fn service_descriptors() -> FileDescriptorSet {
    let all = envoy_descriptors();
    let mut files_by_name = BTreeMap::new();
    for file in &all.file {
        files_by_name.extend(names(file).map(|name| (name, file.name().to_owned())));
    }
    let find = |name: &str| {
        // A nested message belongs to its outermost message.
        let contains = |outer: &str| name == outer || name.starts_with(&format!("{outer}."));
        files_by_name.iter().find(|(outer, _)| contains(outer)).unwrap()
    };
    let services = all.file.iter().filter(|file| SERVICES.contains(&file.name()));
    let methods = services.flat_map(|file| &file.service).flat_map(|service| &service.method);
    let mut pending: Vec<_> = methods
        .flat_map(|method| [method.input_type().to_owned(), method.output_type().to_owned()])
        .collect();
    let mut needed = BTreeSet::new();
    while let Some(name) = pending.pop() {
        let (top, file) = find(&name);
        if needed.insert(top.clone()) {
            let file = all.file.iter().find(|f| f.name() == file).unwrap();
            let is_top = |message: &&DescriptorProto| {
                format!(".{}.{}", file.package(), message.name()) == *top
            };
            pending.extend(file.message_type.iter().filter(is_top).flat_map(references));
        }
    }
    let files = all.file.iter().filter(|file| names(file).any(|name| needed.contains(&name)));
    let files = files.map(|file| reduce(file, &needed, &find)).collect();
    FileDescriptorSet { file: files }
}

/// Reduces a file to the messages that are needed.
fn reduce<'a>(
    file: &FileDescriptorProto,
    needed: &BTreeSet<String>,
    find: &impl Fn(&str) -> (&'a String, &'a String),
) -> FileDescriptorProto {
    let name = |text: &str| format!(".{}.{text}", file.package());
    let mut reduced = FileDescriptorProto {
        name: file.name.clone(),
        package: file.package.clone(),
        syntax: file.syntax.clone(),
        ..FileDescriptorProto::default()
    };
    let messages =
        file.message_type.iter().filter(|message_type| needed.contains(&name(message_type.name())));
    reduced.message_type = messages.cloned().collect();
    reduced.message_type.iter_mut().for_each(strip_options);
    let enums = file.enum_type.iter().filter(|enum_type| needed.contains(&name(enum_type.name())));
    reduced.enum_type = enums.cloned().collect();
    reduced.enum_type.iter_mut().for_each(strip_enum_options);
    if SERVICES.contains(&file.name()) {
        reduced.service.clone_from(&file.service);
        for service in &mut reduced.service {
            service.options = None;
            service.method.iter_mut().for_each(|method| method.options = None);
        }
    }
    let methods = reduced.service.iter().flat_map(|service| &service.method);
    let of_methods = methods
        .flat_map(|method| [method.input_type().to_owned(), method.output_type().to_owned()]);
    let of_messages = reduced.message_type.iter().flat_map(references);
    let files = of_methods.chain(of_messages).map(|method| find(&method).1.clone());
    let files: BTreeSet<_> = files.filter(|f| f != file.name()).collect();
    reduced.dependency = files.into_iter().collect();
    reduced
}

#[test]
fn the_checked_in_descriptors_are_up_to_date() {
    let expected = service_descriptors().encode_to_vec();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert!(
        std::fs::read(&path).is_ok_and(|actual| actual == expected),
        "{FILE} is not up to date; update it with UPDATE=1 cargo test -p tollgate-daemon --test \
         server descriptors"
    );
}
