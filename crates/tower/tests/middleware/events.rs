//! Events of the feature `tracing`.

use tollgate_testkit::Events;
use tollgate_tower::{KeyExtractor, RateLimitLayer};

use crate::support::{api, around, get, statuses, stopped, with_headers};

#[tokio::test]
async fn rejections_are_events_without_keys() {
    let (limiter, _) = stopped();
    let layer = RateLimitLayer::new(limiter, api("1/min"), KeyExtractor::header("x-key"));
    let (service, _) = around(&layer);
    let events = Events::record();
    let requests = [&["x-key: secret"][..], &["x-key: secret"], &[]].map(with_headers);
    assert_eq!(statuses(&service, requests).await, [200, 429, 400]);
    let events = events.take();
    assert!(!format!("{events:?}").contains("secret"), "{events:?}");
    let events: Vec<_> =
        events.iter().map(|(_, target, fields)| (&**target, fields["status"].as_u64())).collect();
    let tower = "tollgate_tower";
    assert_eq!(events, [("tollgate", None), (tower, Some(429)), (tower, Some(400))]);
}

#[tokio::test]
async fn a_missing_peer_address_is_a_warning_with_the_remedy_once() {
    let layer = RateLimitLayer::new(stopped().0, api("1/min"), KeyExtractor::peer_address());
    let (service, _) = around(&layer);
    let events = Events::record();
    assert_eq!(statuses(&service, [get("/"), get("/")]).await, [400, 400]);
    let warnings: Vec<_> =
        events.take().into_iter().filter(|(level, ..)| level == "WARN").collect();
    let [(_, target, fields)] = &*warnings else { panic!("{warnings:?}") };
    let remedy = "into_make_service_with_connect_info::<SocketAddr>()";
    assert!(target == "tollgate_tower" && fields.to_string().contains(remedy), "{fields}");
}
