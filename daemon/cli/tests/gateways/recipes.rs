//! The recipes of `docs/recipes.md` for gateways.

use tollgate_testkit::{Folder, GatewayKind, Port};

use crate::client::send;
use crate::daemon::Daemon;
use crate::process::{page_block, read_repository};
use crate::setup::{Options, Setup};

#[test]
fn nginx_limits_an_account_by_the_plan_of_its_key() {
    if !GatewayKind::Nginx.is_installed() {
        return;
    }
    let page = read_repository("docs/recipes.md");
    let (_, recipe) = page.split_once("## nginx: plans").unwrap();
    let [keys, headers, policy, rule] =
        ["keys.conf", "location = /_tollgate", "tollgate.yaml", "/**"]
            .map(|name| page_block(recipe, name));
    let ip = "        proxy_set_header X-Real-IP $remote_addr;\n";
    let upstream = "upstream tollgate {";
    let catch_all = "  - match: { path: \"/**\" }\n";
    let setup = Setup::with(
        GatewayKind::Nginx,
        Options {
            edits: &[
                ("policies:\n", &format!("policies:\n{policy}")),
                (catch_all, &format!("{rule}{catch_all}")),
                ("20/s burst 100", "3/h log"),
            ],
            gateway_edits: &[
                (ip, &format!("{ip}{headers}")),
                (upstream, &format!("{keys}{upstream}")),
            ],
            ..Options::default()
        },
    );
    let spend = |host: u8, headers: &[&str], expected: &[u16]| {
        for (at, status) in expected.iter().enumerate() {
            let response = setup.send(host, "GET /api/items", headers);
            assert_eq!(response.status, *status, "{headers:?}, request {at}: {response:?}");
        }
    };
    spend(9, &["X-Api-Key: k-3f9a"], &[200, 200, 200, 200, 429]);
    spend(9, &["X-Api-Key: k-77b1", "X-Plan: gold"], &[200, 200, 429]);
    // The account is limited from every address.
    spend(10, &["X-Api-Key: k-3f9a"], &[429]);
    // Made-up keys and accounts share the limit of the address.
    spend(9, &["X-Api-Key: k-0001"], &[200]);
    spend(9, &["X-Api-Key: k-0002", "X-Account: acme"], &[200]);
    spend(9, &[], &[200, 429]);
    spend(9, &["X-Api-Key: k-0003"], &[429]);
}

#[test]
fn sliding_windows_replace_the_fixed_windows_of_envoy() {
    let page = read_repository("docs/recipes.md");
    let (_, recipe) = page.split_once("## Envoy: sliding").unwrap();
    let folder = Folder::create();
    folder.write("limits.yaml", page_block(recipe, "requests_per_unit"));
    let path = folder.write("tollgate.yaml", "envoy: { config: limits.yaml }\n");
    let port = Port::reserve();
    let _daemon = Daemon::start(&path, port.number(), None);
    let status = |entries: &str| {
        let body = format!(r#"{{"domain":"edge","descriptors":[{{"entries":[{entries}]}}]}}"#);
        send(("127.0.0.1", port.number()), "POST /json", &[], &body).status
    };
    let address = r#"{"key":"masked_remote_address","value":"192.0.2.0"}"#;
    let login = format!(r#"{{"key":"path","value":"/login"}},{address}"#);
    for (entries, count) in [(address, 100), (&login, 5)] {
        for at in 0..count {
            assert_eq!(status(entries), 200, "request {at} of {entries}");
        }
        assert_eq!(status(entries), 429, "{entries}");
    }
}
