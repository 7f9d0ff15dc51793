//! Helpers shared by the discovery of clusters and of sentinels.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::Value;
use tollgate_state::{Failure, FailureKind};

/// How long a server may take to answer before the next is queried as well.
const PATIENCE: Duration = Duration::from_millis(100);

/// Queries servers one after the other until one answers; returns the first success, or else the last
/// failure.
pub(super) async fn first_success<T>(
    requests: impl IntoIterator<Item = impl Future<Output = Result<T, Failure>>>,
) -> Result<T, Failure> {
    let delayed = requests.into_iter().zip(0..).map(async |(request, number)| {
        tokio::time::sleep(PATIENCE * number).await;
        request.await
    });
    let mut requests: FuturesUnordered<_> = delayed.collect();
    let mut last = Failure::new(FailureKind::Unreachable, "no server is configured");
    while let Some(result) = requests.next().await {
        match result {
            Ok(value) => return Ok(value),
            // Other failures are more informative than an unreachable server.
            Err(error) if error.kind == FailureKind::Unreachable && last.kind != error.kind => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads a text. Nil is an empty text: a server that does not know its host name returns it.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Nil => Some(String::new()),
        _ => None,
    }
}
