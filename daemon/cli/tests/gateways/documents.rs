//! The pages of `docs/gateways` show what `tollgate init` prints.

use std::fs;
use std::path::Path;

use crate::init::{gateways, init};
use crate::tokens::TOKENS;

/// The text of a gateway's page.
pub(crate) fn page(gateway: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateways");
    fs::read_to_string(docs.join(format!("{gateway}.md"))).unwrap()
}

#[test]
fn pages_show_the_files_that_init_prints() {
    for (gateway, files) in gateways() {
        let page = page(gateway);
        for file in files {
            let (_, text, _) = init(&[gateway, "--file", file]);
            let shown = page
                .split("```")
                .any(|block| block.split_once('\n').is_some_and(|(_, shown)| shown == text));
            assert!(shown, "docs/gateways/{gateway}.md does not show {file} as init prints it");
        }
    }
}

/// The tests enable tokens with the command of the page.
#[test]
fn pages_show_how_to_enable_tokens() {
    let (from, to) = TOKENS;
    let line = format!("\nsed -i 's/{from}/{to}/' tollgate.yaml ");
    for (gateway, _) in gateways() {
        assert!(page(gateway).contains(&line), "docs/gateways/{gateway}.md lacks{line}");
    }
}
