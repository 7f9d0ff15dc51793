//! Pattern 17: Redis is away. Each policy says what that means: `deny` fails closed and is the
//! default, `allow` fails open.
//!
//! The well-known version waits for its client's timeout, or lets an exception decide. Here every
//! decision has its answer within a deadline outside of the client, 15 ms unless told otherwise, and
//! says by whom: `degraded`, with the reason `store`. See in the output that it does not matter
//! whether the server is gone or silent, that the strictest policy of a request holds, and that what
//! does not decide is an error with its remedy.
//!
//! A circuit breaker and a local fallback come with later versions. This needs no server: it talks to
//! ports where nobody listens, and where nobody answers.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

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

    // Connections are made to this one, and nothing is ever read from them.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    // Nobody listens here any more.
    let gone = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    for (server, address) in [("gone", gone), ("silent", silent.local_addr()?)] {
        let builder = Limiter::builder().connect_timeout(std::time::Duration::from_millis(50));
        let limiter = builder.open(&format!("redis://{address}")).await?;
        println!("{}the server is {server}", if server == "gone" { "" } else { "\n" });
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
        let verb = Operation::Check { lease: None };
        let answer =
            limiter.decide(&Request { operation: verb, checks: &both, request_id: None }).await?;
        println!("  both in one request   allowed {}", answer.allowed());
        assert!(!answer.allowed());
        match limiter.reset(&open, key).await {
            Err(StoreError::Unavailable(unavailable))
                if unavailable.kind == FailureKind::Unreachable =>
            {
                println!("  reset                 {}", unavailable.kind);
            }
            other => return Err(format!("that was no failure: {other:?}").into()),
        }
        let stats = limiter.stats();
        println!("  decided without it    {}", stats.degraded_allowed + stats.degraded_denied);
        assert_eq!((stats.degraded_allowed, stats.degraded_denied), (1, 3));
    }
    Ok(())
}
