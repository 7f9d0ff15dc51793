//! The pages of `docs/gateways` show what `tollgate init` prints.

use std::fs;
use std::path::Path;

use crate::init::{gateways, init};

#[test]
fn pages_show_each_file_as_it_is_printed() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateways");
    for (gateway, files) in gateways() {
        let page = fs::read_to_string(docs.join(format!("{gateway}.md"))).unwrap();
        for file in files {
            let (_, text, _) = init(&[gateway, "--file", file]);
            let shown = page
                .split("```")
                .any(|block| block.split_once('\n').is_some_and(|(_, shown)| shown == text));
            assert!(shown, "docs/gateways/{gateway}.md does not show {file} as init prints it");
        }
    }
}
