//! Every verb: request → status and JSON.

use crate::daemon::Daemon;
use crate::rows;

#[tokio::test]
async fn every_verb_answers_as_the_rows_say() {
    let daemon = Daemon::start().await;
    let checked = rows::check_all(&daemon, include_str!("verbs.rows")).await;
    assert!(checked > 40, "only {checked} rows were found");
}
