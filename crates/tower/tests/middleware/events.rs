//! Events of the feature `tracing`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tollgate_tower::{KeyExtractor, RateLimitLayer};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{api, around, statuses, stopped, with_headers};

/// What a subscriber has written.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Output {
    type Writer = Output;

    fn make_writer(&self) -> Output {
        self.clone()
    }
}

#[tokio::test]
async fn rejections_are_events_without_keys() {
    let output = Output::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(LevelFilter::DEBUG)
        .without_time()
        .with_writer(output.clone())
        .finish();
    let subscribed = tracing::subscriber::set_default(subscriber);
    let (limiter, _) = stopped();
    let layer = RateLimitLayer::new(limiter, api("1/min"), KeyExtractor::header("x-key"));
    let (service, _) = around(&layer);
    let requests = [&["x-key: secret"][..], &["x-key: secret"], &[]].map(with_headers);
    assert_eq!(statuses(&service, requests).await, [200, 429, 400]);
    drop(subscribed);
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let events = text.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        (event["target"].clone(), event["fields"]["status"].clone())
    });
    let expected = [
        (json!("tollgate"), Value::Null),
        (json!("tollgate_tower"), json!(429)),
        (json!("tollgate_tower"), json!(400)),
    ];
    assert_eq!(events.collect::<Vec<_>>(), expected);
}
