//! Reading a body, with bounds on its length and time.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use tokio::time::timeout;

use super::problem::{Problem, ProblemKind};
use tollgate_config::Bounds;

/// Reads a whole body within the bounds of the configuration on its length and time.
pub async fn read(body: Incoming, bounds: &Bounds) -> Result<Bytes, Problem> {
    let (max_len, deadline) = (bounds.body, bounds.header_timeout);
    // A body that announces too large a length is rejected at once. A length that `usize` cannot
    // represent is larger than any bound.
    if usize::try_from(body.size_hint().lower()).map_or(true, |len| len > max_len) {
        return Err(too_large(max_len));
    }
    timeout(deadline, collect(body, max_len)).await.unwrap_or_else(|_| {
        let detail = format!("the body must arrive within {deadline:?} of the head");
        Err(Problem::new(ProblemKind::BodyTimeout, detail))
    })
}

/// Joins the frames of a body. A single frame, the usual case, is not copied.
async fn collect(mut body: Incoming, max_len: usize) -> Result<Bytes, Problem> {
    let mut all = Bytes::new();
    let mut joined = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Problem::bad_request(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len().max(joined.len()).saturating_add(data.len()) > max_len {
            return Err(too_large(max_len));
        }
        if all.is_empty() && joined.is_empty() {
            all = data;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut all));
            joined.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if joined.is_empty() { all } else { joined.into() })
}

fn too_large(max_len: usize) -> Problem {
    let detail = format!("a body has at most {max_len} bytes; send fewer checks at once");
    Problem::new(ProblemKind::BodyTooLarge, detail)
}

/// The text of a body.
pub(super) fn text(body: &Bytes) -> Result<&str, Problem> {
    std::str::from_utf8(body).map_err(|error| {
        Problem::bad_request(format!(
            "the body is not valid UTF-8 at byte {}; send a key of arbitrary bytes as key_base64",
            error.valid_up_to()
        ))
    })
}
