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
    let envoy = packages.iter().find(|it| it["name"] == "envoy-types").unwrap();
    let manifest = PathBuf::from(envoy["manifest_path"].as_str().unwrap());
    let bytes = std::fs::read(manifest.with_file_name("src/generated/types.bin")).unwrap();
    FileDescriptorSet::decode(&*bytes).unwrap()
}

/// What one file declares, by full name: whether it is needed is asked by these.
fn names(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    let of = |name: &Option<String>| format!(".{}.{}", file.package(), name.as_ref().unwrap());
    let messages = file.message_type.iter().map(move |it| of(&it.name));
    messages.chain(file.enum_type.iter().map(move |it| of(&it.name)))
}

fn references(message: &DescriptorProto) -> Vec<String> {
    let own = message.field.iter().filter_map(|it| it.type_name.clone());
    own.chain(message.nested_type.iter().flat_map(references)).collect()
}

/// Leaves what generators of code want to know, and what only other files say.
fn bare(message: &mut DescriptorProto) {
    message.options = message.options.take().filter(|it| it.map_entry.is_some());
    message.field.iter_mut().for_each(|it| it.options = None);
    message.oneof_decl.iter_mut().for_each(|it| it.options = None);
    for it in &mut message.enum_type {
        it.options = None;
        it.value.iter_mut().for_each(|it| it.options = None);
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
        let is_it = |it: &str| name == it || name.starts_with(&format!("{it}."));
        homes.iter().find(|(it, _)| is_it(it)).unwrap()
    };
    let service = all.file.iter().find(|it| it.name() == SERVICE).unwrap();
    let methods = service.service.iter().flat_map(|it| &it.method);
    let mut ahead: Vec<_> =
        methods.flat_map(|it| [it.input_type().to_owned(), it.output_type().to_owned()]).collect();
    let mut needed = BTreeSet::new();
    while let Some(name) = ahead.pop() {
        let (top, file) = home(&name);
        if needed.insert(top.clone()) {
            let file = all.file.iter().find(|it| it.name() == file).unwrap();
            let is_it =
                |it: &&DescriptorProto| format!(".{}.{}", file.package(), it.name()) == *top;
            ahead.extend(file.message_type.iter().filter(is_it).flat_map(references));
        }
    }
    let files = all.file.iter().filter(|it| names(it).any(|it| needed.contains(&it)));
    let files = files.map(|file| cut(file, &needed, &home)).collect();
    FileDescriptorSet { file: files }
}

fn cut<'a>(
    file: &FileDescriptorProto,
    needed: &BTreeSet<String>,
    home: &impl Fn(&str) -> (&'a String, &'a String),
) -> FileDescriptorProto {
    let name = |it: &str| format!(".{}.{it}", file.package());
    let mut cut = FileDescriptorProto {
        name: file.name.clone(),
        package: file.package.clone(),
        syntax: file.syntax.clone(),
        ..FileDescriptorProto::default()
    };
    let messages = file.message_type.iter().filter(|it| needed.contains(&name(it.name())));
    cut.message_type = messages.cloned().collect();
    cut.message_type.iter_mut().for_each(bare);
    let enums = file.enum_type.iter().filter(|it| needed.contains(&name(it.name())));
    cut.enum_type = enums.cloned().collect();
    for it in &mut cut.enum_type {
        it.options = None;
        it.value.iter_mut().for_each(|it| it.options = None);
    }
    if file.name() == SERVICE {
        cut.service.clone_from(&file.service);
        for it in &mut cut.service {
            it.options = None;
            it.method.iter_mut().for_each(|it| it.options = None);
        }
    }
    let methods = cut.service.iter().flat_map(|it| &it.method);
    let of_methods =
        methods.flat_map(|it| [it.input_type().to_owned(), it.output_type().to_owned()]);
    let of_messages = cut.message_type.iter().flat_map(references);
    let files = of_methods.chain(of_messages).map(|it| home(&it).1.clone());
    let files: BTreeSet<_> = files.filter(|it| it != file.name()).collect();
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
