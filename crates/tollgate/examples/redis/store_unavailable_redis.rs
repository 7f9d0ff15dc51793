//! Redis is unavailable: a policy fails closed (`deny`, the default) or open (`allow`).
//!
//! Every decision is made within a deadline, 15 ms by default, and states that it is degraded, with
//! the reason `store`. The output shows the same result for a server that refuses connections and for
//! one that does not respond, that the strictest policy of a request applies, and that operations
//! other than checks return an error with a remedy.
//!
//! This example needs no server; it connects to ports without a listener and without a response.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::net::TcpListener;

use tollgate::{
    Check, Cost, FailureKind, Key, Limiter, OnStoreError, Operation, Policy, Request, StoreError,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let closed: Policy = "10/s".parse()?;
    let open = closed.clone().with_on_store_error(OnStoreError::Allow);
    let key = Key::new("user:42")?;

    // Accepts connections and never reads from them.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    // A port without a listener.
    let closed_port = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    for (server, address) in
        [("refuses connections", closed_port), ("does not respond", silent.local_addr()?)]
    {
        let builder = Limiter::builder().connect_timeout(std::time::Duration::from_millis(50));
        let limiter = builder.open(&format!("redis://{address}")).await?;
        println!("{}server: {server}", if server == "refuses connections" { "" } else { "\n" });
        for (name, policy, allowed) in [("deny", &closed, false), ("allow", &open, true)] {
            let decision = limiter.check(policy, key).await?;
            println!(
                "  on_store_error {name:<5}  allowed {}, reason {}, source {}, degraded {}",
                decision.allowed,
                decision.reason.as_str(),
                decision.source.as_str(),
                decision.degraded
            );
            assert_eq!((decision.allowed, decision.degraded), (allowed, true));
        }
        let both = [&open, &closed].map(|policy| Check { policy, key: b"k", cost: Cost::ONE });
        let operation = Operation::Check { lease: None };
        let answer =
            limiter.decide(&Request { operation, checks: &both, request_id: None }).await?;
        println!("  both in one request   allowed {}", answer.allowed());
        assert!(!answer.allowed());
        match limiter.reset(&open, key).await {
            Err(StoreError::Unavailable(unavailable))
                if unavailable.kind == FailureKind::Unreachable =>
            {
                println!("  reset                 {}", unavailable.kind);
            }
            other => return Err(format!("expected a failure: {other:?}").into()),
        }
        let stats = limiter.stats();
        println!("  degraded decisions    {}", stats.degraded_allowed + stats.degraded_denied);
        assert_eq!((stats.degraded_allowed, stats.degraded_denied), (1, 3));
    }
    Ok(())
}
