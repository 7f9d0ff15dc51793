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
fn pages_show_each_file_as_it_is_printed() {
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

/// What the tests do to a daemon's file in order that it wants a token.
#[test]
fn pages_say_how_the_daemon_wants_a_token() {
    let (from, to) = TOKENS;
    let line = format!("\nsed -i 's/{from}/{to}/' tollgate.yaml ");
    for (gateway, _) in gateways() {
        assert!(page(gateway).contains(&line), "docs/gateways/{gateway}.md lacks{line}");
    }
}
