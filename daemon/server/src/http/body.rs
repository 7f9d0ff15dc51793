//! Reading a body, within bounds of length and time.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use tokio::time::timeout;

use super::problem::{Kind, Problem};

/// Reads a whole body of at most `most` bytes, that comes within `patience`.
pub(crate) async fn read(
    body: Incoming,
    most: usize,
    patience: Duration,
) -> Result<Bytes, Problem> {
    // What says that it is too large is not waited for.
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(too_large(most));
    }
    timeout(patience, collect(body, most)).await.unwrap_or_else(|_| {
        let detail = format!("it must be there within {patience:?} of its head");
        Err(Problem::new(Kind::BodyTimeout, detail))
    })
}

/// The frames of a body in one piece; nearly always there is one, which is not copied.
async fn collect(mut body: Incoming, most: usize) -> Result<Bytes, Problem> {
    let mut all = Bytes::new();
    let mut joined = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::bad(format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len().max(joined.len()).saturating_add(data.len()) > most {
            return Err(too_large(most));
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

fn too_large(most: usize) -> Problem {
    let detail = format!("a body may have at most {most} bytes; send fewer checks at once");
    Problem::new(Kind::BodyTooLarge, detail)
}

/// The text of a body.
pub(super) fn text(body: &Bytes) -> Result<&str, Problem> {
    std::str::from_utf8(body).map_err(|error| {
        Problem::bad(format!(
            "the body is not UTF-8 from byte {} on; send a key of other bytes as key_base64",
            error.valid_up_to()
        ))
    })
}
