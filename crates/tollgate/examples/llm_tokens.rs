//! A budget of tokens for a language model: the estimate is charged before the call, and replaced by the
//! actual count afterwards. Requests, tokens and calls in flight are limited in one decision: all are
//! charged, or none is.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use tollgate::{AcquireError, Check, Cost, Denied, Limiter, ManualClock, MemoryLimiter, Policy};

struct Budget {
    limiter: Limiter,
    requests: Policy,
    tokens: Policy,
    in_flight: Policy,
}

impl Budget {
    /// Calls the model for a tenant; returns its answer.
    async fn ask(&self, tenant: &str, estimate: u32) -> Result<String, AcquireError> {
        let checks = [
            Check::new(&self.requests, tenant),
            Check::new(&self.tokens, tenant).with_cost(Cost::from(estimate)),
            Check::new(&self.in_flight, tenant),
        ];
        let permit = self.limiter.acquire_all(&checks).await?;
        let (answer, tokens) = model(estimate).await;
        // If the store fails meanwhile, the estimate stays charged.
        if let Err(error) = permit.settle(&self.tokens, Cost::from(tokens)).await {
            println!("not settled: {error}");
        }
        Ok(answer)
    }

    async fn remaining(&self, policy: &Policy, tenant: &str) -> u64 {
        self.limiter.peek(policy, tenant, Cost::ONE).await.remaining
    }
}

/// A model that takes two thirds of the estimate.
async fn model(estimate: u32) -> (String, u32) {
    tokio::task::yield_now().await;
    ("42".to_owned(), estimate * 2 / 3)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    let budget = Budget {
        limiter: limiter.into(),
        requests: Policy::named("requests", "60/min fixed")?,
        tokens: Policy::named("tokens", "10000/d fixed")?,
        in_flight: Policy::named("in-flight", "4 concurrent lease 60s")?,
    };
    for expected in [8_000, 6_000, 4_000, 2_000] {
        println!("the answer is {}", budget.ask("acme", 3_000).await?);
        let remaining = budget.remaining(&budget.tokens, "acme").await;
        println!("{remaining} tokens remain");
        assert_eq!(remaining, expected);
    }
    let denied = budget.ask("acme", 3_000).await.err().ok_or("the budget is exceeded")?;
    println!("{denied}");
    assert!(matches!(denied, AcquireError::Denied(Denied::RetryAfter(_))));
    // The denied call counts as no request, and holds no slot.
    assert_eq!(budget.remaining(&budget.requests, "acme").await, 56);
    assert_eq!(budget.remaining(&budget.in_flight, "acme").await, 4);
    Ok(())
}
