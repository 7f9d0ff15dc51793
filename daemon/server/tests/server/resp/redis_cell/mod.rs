//! `CL.THROTTLE`, compared with a model of redis-cell.
//!
//! Four differences are intended: fractions of a millisecond are rounded up too, a quantity of 0
//! changes nothing, senseless numbers are errors, and a key keeps its usage when the numbers change.
//! The model includes the first two; rows in `throttle.rs` show all four.

mod model;
mod random;

use tollgate::Micros;

use self::model::Reply;
use crate::resp::RespClient;
use crate::support::daemon::Daemon;

/// Sends `CL.THROTTLE` with these arguments.
async fn throttle(client: &mut RespClient, arguments: &str) -> Result<Reply, String> {
    let reply = client.call(&format!("CL.THROTTLE {arguments}")).await;
    let integers = reply.strip_prefix("*5 :").ok_or_else(|| format!("{arguments}: {reply}"))?;
    let integers: Vec<i128> = integers.split(" :").map(|part| part.parse().unwrap()).collect();
    Ok(integers.try_into().unwrap())
}

#[tokio::test]
async fn high_rates_are_enforced_for_single_requests() {
    const PAUSE: u64 = 83;
    const COMMANDS: u64 = 18_000;
    let daemon = Daemon::start().await;
    let mut client = RespClient::connect(&daemon).await;
    let mut admitted = 0;
    // For a second and a half, twice the admitted rate, evenly.
    for _ in 0..COMMANDS {
        daemon.clock.advance(Micros::new(PAUSE));
        admitted += 1 - throttle(&mut client, "k 9 6000 1").await.unwrap()[0];
    }
    // redis-cell drops state that lives for less than a millisecond, and admits far more.
    let elapsed = (COMMANDS - 1) * PAUSE;
    assert_eq!(admitted, 10 + i128::from(elapsed * 6_000 / 1_000_000));
}
