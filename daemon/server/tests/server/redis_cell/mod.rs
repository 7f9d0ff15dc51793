//! `CL.THROTTLE` beside what redis-cell answers, by a clock that stands still.
//!
//! Four things differ on purpose: what is left below a millisecond is rounded up too, a quantity of
//! 0 changes nothing, numbers that make no sense are errors, and a key that is asked for with other
//! numbers keeps what was used. The first two are in the model; rows in `resp/throttle.rs` show
//! all four.

mod model;
mod random;

use tollgate::Micros;

use self::model::Reply;
use crate::daemon::Daemon;
use crate::resp::Talk;

/// The answer to these words behind `CL.THROTTLE`.
async fn throttle(talk: &mut Talk, words: &str) -> Result<Reply, String> {
    let said = talk.ask(&format!("CL.THROTTLE {words}")).await;
    let integers = said.strip_prefix("*5 :").ok_or_else(|| format!("{words}: {said}"))?;
    let integers: Vec<i128> = integers.split(" :").map(|part| part.parse().unwrap()).collect();
    Ok(integers.try_into().unwrap())
}

#[tokio::test]
async fn thousands_a_second_are_limited_also_where_they_come_one_by_one() {
    const PAUSE: u64 = 83;
    const ASKED: u64 = 18_000;
    let daemon = Daemon::start().await;
    let mut talk = Talk::with(&daemon).await;
    let mut admitted = 0;
    // A second and a half of twice as many as are let through, evenly.
    for _ in 0..ASKED {
        daemon.clock.advance(Micros::new(PAUSE));
        admitted += 1 - throttle(&mut talk, "k 9 6000 1").await.unwrap()[0];
    }
    // redis-cell forgets what lives for less than a millisecond, and admits far more.
    let elapsed = (ASKED - 1) * PAUSE;
    assert_eq!(admitted, 10 + i128::from(elapsed * 6_000 / 1_000_000));
}
