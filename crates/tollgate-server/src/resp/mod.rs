//! RESP: any client of Redis.

use std::sync::Arc;

use crate::daemon::Daemon;
use crate::listener::{Remote, Stream};
use crate::pulse::Pulse;

/// Serves a connection until its peer leaves, dawdles, must make room, or the daemon stops.
pub(crate) async fn serve(
    _daemon: &Arc<Daemon>,
    _stream: Stream,
    _remote: Remote,
    _pulse: Arc<Pulse>,
) {
}
