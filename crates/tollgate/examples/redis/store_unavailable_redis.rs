//! Redis is unavailable: a policy decides with this process's share of the limit (`local`, the
//! default), fails closed (`deny`) or open (`allow`).
//!
//! The output shows checks before, during and after the outage of a server that this example starts,
//! kills and restarts. This process is the only one, so its share is the whole limit. When the server is
//! back, `local` charges it for what was admitted, so that nothing is admitted again. The second part
//! shows that decisions about a server that does not respond are made in time, too, that the strictest
//! policy of a request applies, and that operations other than checks return an error with a remedy.
//!
//! This example ignores the URL: it starts a `redis-server` of its own, and a port that never responds.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::net::TcpListener;
use std::time::Duration;

use tollgate::{
    Check, Cost, FailureKind, Key, Limiter, OnStoreError, Operation, Policy, Request, StoreError,
};
use tollgate_testkit::{Server, wait_until};

const MODES: [(&str, OnStoreError); 3] =
    [("local", OnStoreError::Local), ("deny", OnStoreError::Deny), ("allow", OnStoreError::Allow)];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    kill_and_restart().await?;
    connect_to_silent_server().await
}

/// Policies with the same limit, by name.
fn policies() -> Result<Vec<Policy>, Box<dyn Error>> {
    let policy = |(name, mode)| Ok(Policy::new(name, ["10/d".parse()?])?.with_on_store_error(mode));
    MODES.into_iter().map(policy).collect()
}

async fn kill_and_restart() -> Result<(), Box<dyn Error>> {
    let server = Server::with(|config| config.line("appendonly yes"));
    let limiter = Limiter::builder().deadline(Duration::from_secs(5)).open(&server.url()).await?;
    wait_until("a share", async || limiter.stats().members == Some(1)).await;
    let (policies, key) = (policies()?, Key::new("user:42")?);

    println!("{:<22}  local  deny  allow", "10/d, admitted");
    let [before, during, after] =
        [("4 checks before", 4), ("12 checks in the outage", 12), ("1 check after", 1)];
    let check = async |(label, count): (&str, u32)| {
        let mut admitted = [0; 3];
        for (policy, admitted) in policies.iter().zip(&mut admitted) {
            for _ in 0..count {
                *admitted += u32::from(limiter.check(policy, key).await.allowed);
            }
        }
        print_row(label, admitted.map(u64::from));
        Ok::<_, StoreError>(admitted)
    };
    assert_eq!(check(before).await?, [4, 4, 4]);
    server.kill();
    assert_eq!(check(during).await?, [10, 0, 12]);
    server.restart();
    wait_until("the charges", async || limiter.stats().pending_keys == 0).await;
    let mut used = [0; 3];
    for (policy, used) in policies.iter().zip(&mut used) {
        *used = limiter.inspect(policy, key).await?.limits.iter().map(|limit| limit.used).sum();
    }
    print_row("charged at the server", used);
    assert_eq!(used, [14, 4, 4]);
    assert_eq!(check(after).await?, [0, 1, 1]);
    Ok(())
}

fn print_row(label: &str, [local, deny, allow]: [u64; 3]) {
    println!("{label:<22}  {local:>5}  {deny:>4}  {allow:>5}");
}

async fn connect_to_silent_server() -> Result<(), Box<dyn Error>> {
    // Accepts connections and never reads from them.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let builder = Limiter::builder().connect_timeout(Duration::from_millis(50));
    let limiter = builder.open(&format!("redis://{}", silent.local_addr()?)).await?;
    let (policies, key) = (policies()?, Key::new("user:42")?);
    println!("\na server that does not respond, and has never responded");
    for (policy, allowed) in policies.iter().zip([false, false, true]) {
        let decision = limiter.check(policy, key).await;
        println!(
            "  on_store_error {:<5}  allowed {}, reason {}, source {}, degraded {}",
            policy.name(),
            decision.allowed,
            decision.reason.as_str(),
            decision.source.as_str(),
            decision.degraded
        );
        assert_eq!((decision.allowed, decision.degraded), (allowed, true));
    }
    let both =
        [&policies[2], &policies[1]].map(|policy| Check { policy, key: b"k", cost: Cost::ONE });
    let operation = Operation::Check { lease: None };
    let answer = limiter.decide(&Request { operation, checks: &both, request_id: None }).await?;
    println!("  allow and deny in one request   allowed {}", answer.allowed());
    assert!(!answer.allowed());
    match limiter.reset(&policies[2], key).await {
        Err(StoreError::Unavailable(unavailable))
            if unavailable.kind == FailureKind::Unreachable =>
        {
            println!("  reset                 {}", unavailable.kind);
        }
        other => return Err(format!("expected a failure: {other:?}").into()),
    }
    let stats = limiter.stats();
    println!("  degraded decisions    {}", stats.degraded_allowed + stats.degraded_denied);
    assert_eq!((stats.degraded_allowed, stats.degraded_denied), (1, 4));
    Ok(())
}
