//! A daemon whose store is away.

use crate::process::Daemon;
use crate::run::json;

#[test]
fn what_stood_in_for_the_store_is_counted_apart_and_held_against_nothing() {
    // Nobody listens at port 1.
    let config = r#"
store: { url: "redis://127.0.0.1:1" }
policies:
  open: { limits: [10/d], on_store_error: allow }
  shut: { limits: [10/d], on_store_error: deny }
"#;
    for (flag, scheme) in [("--http", "http"), ("--resp", "redis")] {
        let daemon = Daemon::start(flag, &[("tollgate.yaml", config)]);
        for (policy, answer) in [("open", "allowed"), ("shut", "denied")] {
            let target = format!("{scheme}://127.0.0.1:{}", daemon.port);
            let (code, value) =
                json(&format!("{target} --policy {policy} -n 30 --verify --against 1/d"));
            assert_eq!(code, 0, "{value}");
            assert_eq!(value["degraded"][answer], 30, "{value}");
            assert_eq!((&value["allowed"], &value["denied"]), (&0.into(), &0.into()), "{value}");
            assert_eq!(value["verify"]["admissions"], 0, "{value}");
        }
    }
}
