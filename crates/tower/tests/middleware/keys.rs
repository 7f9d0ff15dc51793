//! Keys other than addresses.

use std::io;

use http::Request;
use tollgate::{Cost, Key, MAX_KEY_LEN};
use tollgate_tower::{KeyExtractor, RateLimitLayer};

use crate::support::{api, around, get, send, stopped, with_headers};

/// The status of a request, and whether it was counted under the key.
async fn counted(extractor: KeyExtractor, request: Request<()>, key: &str) -> (u16, bool) {
    let (limiter, _) = stopped();
    let layer = RateLimitLayer::new(limiter.clone(), api("9/min"), extractor);
    let (service, _) = around(&layer);
    let status = send(&service, request).await.status.as_u16();
    let key = Key::new(key).unwrap();
    (status, limiter.peek(&api("9/min"), key, Cost::ONE).remaining == 8)
}

#[derive(Clone)]
struct User(u64);

#[tokio::test]
async fn each_source_has_its_key() {
    let header = || KeyExtractor::header("x-user");
    let user = || KeyExtractor::extension(|user: &User| user.0.to_string());
    let with_user = |id| {
        let mut request = get("/a/b?c=d");
        request.extensions_mut().insert(User(id));
        request
    };
    let lookup = || {
        KeyExtractor::from_async_fn(|head| {
            let token = head.headers.get("x-user").map(|token| token.as_bytes().to_vec());
            async move {
                tokio::task::yield_now().await;
                match token.as_deref() {
                    Some(b"down") => Err(io::Error::other("the session store is down")),
                    Some(b"secret") => Ok(Some("ann")),
                    _ => Ok(None),
                }
            }
        })
    };
    let sha256 = "ba7816bf8f01cfea414140de5dae2223"; // of "abc", FIPS 180-2
    for (extractor, request, key, status) in [
        (header(), with_headers(&["x-user: ann"]), "ann", 200),
        (header(), with_headers(&["x-user: \u{fc}\u{feff}"]), "\u{fc}\u{feff}", 200),
        (header(), with_headers(&[]), "", 400),
        (header(), with_headers(&["x-user: "]), "", 400),
        (header(), with_headers(&["x-user: ann", "x-user: bob"]), "ann", 400),
        (KeyExtractor::api_key("x-api-key"), with_headers(&["x-api-key: abc"]), sha256, 200),
        (KeyExtractor::api_key("x-api-key"), with_headers(&[]), "", 400),
        (KeyExtractor::path(), get("/a/b?c=d"), "/a/b", 200),
        (KeyExtractor::matched_path(), get("/a/b"), "/a/b", 400),
        (user(), with_user(42), "42", 200),
        (user(), get("/"), "42", 400),
        (KeyExtractor::global(), get("/"), "global", 200),
        (KeyExtractor::from_fn(|head| head.uri.query().map(str::to_owned)), get("/?q"), "q", 200),
        (KeyExtractor::from_fn(|head| head.uri.query().map(str::to_owned)), get("/"), "q", 400),
        (lookup(), with_headers(&["x-user: secret"]), "ann", 200),
        (lookup(), with_headers(&["x-user: other"]), "ann", 400),
        (lookup(), with_headers(&["x-user: down"]), "ann", 400),
        // The name of the source precedes alternatives, so that no header looks like an address.
        (
            header().or(user()),
            with_headers(&["x-user: extension=7"]),
            "header.x-user=extension=7",
            200,
        ),
        (header().or(user()), with_user(7), "extension=7", 200),
        (header().or(user()), get("/"), "", 400),
        (header().hashed().or(lookup()).or(user()), with_user(7), "extension=7", 200),
        (
            header().hashed().or(user()),
            with_headers(&["x-user: abc"]),
            &*format!("header.x-user={sha256}"),
            200,
        ),
        (
            KeyExtractor::join([header(), KeyExtractor::path()]),
            with_headers(&["x-user: a|b"]),
            "a%7Cb|/",
            200,
        ),
        (KeyExtractor::join([header(), user()]), with_headers(&["x-user: a"]), "a", 400),
        (KeyExtractor::join([]), get("/"), "", 400),
    ] {
        let described = format!("{extractor:?} {:?} {:?}", request.uri(), request.headers());
        let key = if key.is_empty() { "none" } else { key };
        let (found, is_counted) = counted(extractor, request, key).await;
        assert_eq!((found, is_counted), (status, status == 200), "{described}");
    }
}

#[tokio::test]
async fn a_key_that_is_too_long_is_invalid() {
    let extractor = |len| KeyExtractor::from_fn(move |_| Some(vec![b'k'; len]));
    let longest = "k".repeat(MAX_KEY_LEN);
    assert_eq!(counted(extractor(MAX_KEY_LEN), get("/"), &longest).await, (200, true));
    assert_eq!(counted(extractor(MAX_KEY_LEN + 1), get("/"), &longest).await, (400, false));
    assert_eq!(
        counted(extractor(MAX_KEY_LEN + 1).hashed(), get("/"), &longest).await,
        (200, false)
    );
}

#[test]
#[should_panic(expected = "a layer has at most 32 rules")]
fn more_rules_than_can_be_decided_together_panic_at_the_start() {
    let rule = || tollgate_tower::Rule::new(api("1/s"), KeyExtractor::global());
    let _ = RateLimitLayer::with_rules(stopped().0, (0..33).map(|_| rule()));
}
