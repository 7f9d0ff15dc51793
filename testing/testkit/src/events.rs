//! Events of `tracing`.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, Once, PoisonError};

use serde_json::Value;
use tracing::subscriber::{DefaultGuard, set_default, set_global_default};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Records the events of this thread down to the level `DEBUG`, until it is dropped.
#[derive(Debug)]
pub struct Events {
    output: Output,
    _subscribed: DefaultGuard,
}

/// What a subscriber has written.
#[derive(Clone, Debug, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
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

fn subscriber<W>(writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = tracing_subscriber::fmt().json().with_max_level(LevelFilter::DEBUG);
    subscriber.without_time().with_writer(writer).finish()
}

impl Events {
    /// Starts to record.
    #[must_use]
    pub fn record() -> Self {
        // Without a global subscriber, a thread without one of its own would disable the events for
        // all threads.
        static GLOBAL: Once = Once::new();
        GLOBAL.call_once(|| {
            // That of another test serves as well.
            let _ = set_global_default(subscriber(io::sink));
        });
        let output = Output::default();
        Events { _subscribed: set_default(subscriber(output.clone())), output }
    }

    /// Removes and returns the recorded events: the level, the target, and the fields with the message.
    #[must_use]
    pub fn take(&self) -> Vec<(String, String, Value)> {
        let bytes = take(&mut *self.output.0.lock().unwrap_or_else(PoisonError::into_inner));
        let events = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        events
            .map(|event| {
                let mut event = event.expect("the subscriber writes JSON");
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (text(&event["level"]), text(&event["target"]), event["fields"].take())
            })
            .collect()
    }
}
