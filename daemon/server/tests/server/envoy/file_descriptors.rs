//! The file descriptors that reflection serves: a subset of the descriptors of Envoy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";
const FILE: &str = "../envoy/src/rls/descriptors.bin";

/// The descriptor set that `envoy-types` was generated from.
fn envoy_descriptors() -> FileDescriptorSet {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version", "1", "--offline", "--manifest-path"]);
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
    for enum_type in &mut message.enum_type {
        enum_type.options = None;
        enum_type.value.iter_mut().for_each(|value| value.options = None);
    }
    message.nested_type.iter_mut().for_each(strip_options);
}

/// The service, with the messages that it refers to directly or indirectly.
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
    let service = all.file.iter().find(|file| file.name() == SERVICE).unwrap();
    let methods = service.service.iter().flat_map(|service| &service.method);
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
    for enum_type in &mut reduced.enum_type {
        enum_type.options = None;
        enum_type.value.iter_mut().for_each(|value| value.options = None);
    }
    if file.name() == SERVICE {
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
        "{FILE} is not up to date; update it with UPDATE=1 cargo test -p tollgate-server --test \
         server descriptors"
    );
}
