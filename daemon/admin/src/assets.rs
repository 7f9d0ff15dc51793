//! The files of the dashboard, embedded in the binary.

use std::fmt::Write;
use std::sync::LazyLock;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{Response, StatusCode};
use sha2::{Digest, Sha256};
use tollgate_http::Reply;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

/// A file of the dashboard.
struct Asset {
    path: &'static str,
    kind: &'static str,
    content: &'static str,
}

macro_rules! assets {
    ($($path:literal $kind:ident $file:literal;)*) => {
        &[$(Asset { path: $path, kind: $kind, content: include_str!(concat!("../pages/", $file)) }),*]
    };
}

static ASSETS: &[Asset] = assets! {
    "/" HTML "index.html";
    "/style.css" CSS "style.css";
    "/icon.svg" SVG "icon.svg";
    "/main.js" SCRIPT "main.js";
    "/api.js" SCRIPT "api.js";
    "/chart.js" SCRIPT "chart.js";
    "/config.js" SCRIPT "config.js";
    "/dom.js" SCRIPT "dom.js";
    "/format.js" SCRIPT "format.js";
    "/key.js" SCRIPT "key.js";
    "/links.js" SCRIPT "links.js";
    "/overview.js" SCRIPT "overview.js";
    "/policy.js" SCRIPT "policy.js";
    "/store.js" SCRIPT "store.js";
    "/try.js" SCRIPT "try.js";
    "/usage.js" SCRIPT "usage.js";
    "/uplot.js" SCRIPT "vendor/uplot/uPlot.iife.min.js";
    "/uplot.css" CSS "vendor/uplot/uPlot.min.css";
    "/uplot-license.txt" TEXT "vendor/uplot/LICENSE";
};

/// The entity tag of each file.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let tag = |asset: &Asset| {
        let mut tag = "\"".to_owned();
        for byte in Sha256::digest(asset.content).iter().take(8) {
            // Writing to a `String` cannot fail.
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        // Hexadecimal digits in quotes are valid.
        HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
    };
    ASSETS.iter().map(tag).collect()
});

/// The file at a path, if there is one. A browser that has it gets a short answer.
pub(crate) fn find(path: &str, headers: &HeaderMap) -> Option<Reply> {
    let (asset, tag) = ASSETS.iter().zip(TAGS.iter()).find(|(asset, _)| asset.path == path)?;
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|known| known == tag);
    let mut reply = match is_known {
        true => Response::new(Full::default()),
        false => Response::new(Full::new(Bytes::from_static(asset.content.as_bytes()))),
    };
    if is_known {
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    // Checked with the daemon each time: an update must not mix old and new files.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ETAG, tag.clone());
    Some(reply)
}
