//! The messages that reflection tells of, taken out of all those that Envoy has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

const SERVICE: &str = "envoy/service/ratelimit/v3/rls.proto";
const FILE: &str = "src/rls/descriptors.bin";

/// All that the crate of Envoy's messages was made from.
fn all_of_envoy() -> FileDescriptorSet {
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

/// What one file declares, by full name: whether it is needed is asked by these.
fn names(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    let of = |name: &Option<String>| format!(".{}.{}", file.package(), name.as_ref().unwrap());
    let messages = file.message_type.iter().map(move |message_type| of(&message_type.name));
    messages.chain(file.enum_type.iter().map(move |enum_type| of(&enum_type.name)))
}

fn references(message: &DescriptorProto) -> Vec<String> {
    let own = message.field.iter().filter_map(|field| field.type_name.clone());
    own.chain(message.nested_type.iter().flat_map(references)).collect()
}

/// Leaves what generators of code want to know, and what only other files say.
fn bare(message: &mut DescriptorProto) {
    message.options = message.options.take().filter(|option| option.map_entry.is_some());
    message.field.iter_mut().for_each(|field| field.options = None);
    message.oneof_decl.iter_mut().for_each(|oneof_decl| oneof_decl.options = None);
    for enum_type in &mut message.enum_type {
        enum_type.options = None;
        enum_type.value.iter_mut().for_each(|value| value.options = None);
    }
    message.nested_type.iter_mut().for_each(bare);
}

/// The service, with the messages that lead from it, and those alone.
fn of_the_service() -> FileDescriptorSet {
    let all = all_of_envoy();
    let mut homes = BTreeMap::new();
    for file in &all.file {
        homes.extend(names(file).map(|name| (name, file.name().to_owned())));
    }
    let home = |name: &str| {
        let is_it = |text: &str| name == text || name.starts_with(&format!("{text}."));
        homes.iter().find(|(x, _)| is_it(x)).unwrap()
    };
    let service = all.file.iter().find(|file| file.name() == SERVICE).unwrap();
    let methods = service.service.iter().flat_map(|service| &service.method);
    let mut ahead: Vec<_> = methods
        .flat_map(|method| [method.input_type().to_owned(), method.output_type().to_owned()])
        .collect();
    let mut needed = BTreeSet::new();
    while let Some(name) = ahead.pop() {
        let (top, file) = home(&name);
        if needed.insert(top.clone()) {
            let file = all.file.iter().find(|f| f.name() == file).unwrap();
            let is_it = |descriptor_proto: &&DescriptorProto| {
                format!(".{}.{}", file.package(), descriptor_proto.name()) == *top
            };
            ahead.extend(file.message_type.iter().filter(is_it).flat_map(references));
        }
    }
    let files = all.file.iter().filter(|file| names(file).any(|name| needed.contains(&name)));
    let files = files.map(|file| cut(file, &needed, &home)).collect();
    FileDescriptorSet { file: files }
}

fn cut<'a>(
    file: &FileDescriptorProto,
    needed: &BTreeSet<String>,
    home: &impl Fn(&str) -> (&'a String, &'a String),
) -> FileDescriptorProto {
    let name = |text: &str| format!(".{}.{text}", file.package());
    let mut cut = FileDescriptorProto {
        name: file.name.clone(),
        package: file.package.clone(),
        syntax: file.syntax.clone(),
        ..FileDescriptorProto::default()
    };
    let messages =
        file.message_type.iter().filter(|message_type| needed.contains(&name(message_type.name())));
    cut.message_type = messages.cloned().collect();
    cut.message_type.iter_mut().for_each(bare);
    let enums = file.enum_type.iter().filter(|enum_type| needed.contains(&name(enum_type.name())));
    cut.enum_type = enums.cloned().collect();
    for enum_type in &mut cut.enum_type {
        enum_type.options = None;
        enum_type.value.iter_mut().for_each(|value| value.options = None);
    }
    if file.name() == SERVICE {
        cut.service.clone_from(&file.service);
        for service in &mut cut.service {
            service.options = None;
            service.method.iter_mut().for_each(|method| method.options = None);
        }
    }
    let methods = cut.service.iter().flat_map(|service| &service.method);
    let of_methods = methods
        .flat_map(|method| [method.input_type().to_owned(), method.output_type().to_owned()]);
    let of_messages = cut.message_type.iter().flat_map(references);
    let files = of_methods.chain(of_messages).map(|method| home(&method).1.clone());
    let files: BTreeSet<_> = files.filter(|f| f != file.name()).collect();
    cut.dependency = files.into_iter().collect();
    cut
}

#[test]
fn the_descriptors_are_those_of_the_messages_that_are_served() {
    let expected = of_the_service().encode_to_vec();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert!(
        std::fs::read(&path).unwrap_or_default() == expected,
        "{FILE} is not up to date; renew it with UPDATE=1 cargo test -p tollgate-server --test \
         server descriptors"
    );
}
