//! Ids of leases and reservations, and of requests.

use crate::daemon::Daemon;

/// The value of a field that is a text.
fn text<'a>(json: &'a str, field: &str) -> Option<&'a str> {
    json.split_once(&format!(r#""{field}":""#))?.1.split('"').next()
}

#[tokio::test]
async fn ids_are_drawn_where_none_is_given_and_work() {
    let daemon = Daemon::start().await;
    for (verb, policy, field, undo) in [
        ("check", "slots", "lease_id", "release"),
        ("acquire", "slots", "lease_id", "release"),
        ("reserve", "bucket", "reservation_id", "cancel"),
    ] {
        // What is reserved at once has acted, and cannot be cancelled: so the second is.
        let ask = format!(r#"{{"policy":"{policy}","key":"{verb}","cost":2}}"#);
        daemon.post("/v1/reserve", &ask).await;
        let ask = format!(r#"{{"policy":"{policy}","key":"{verb}"}}"#);
        let first = daemon.post(&format!("/v1/{verb}"), &ask).await.body;
        let second = daemon.post(&format!("/v1/{verb}"), &ask).await.body;
        let (first, second) = (text(&first, field).unwrap(), text(&second, field).unwrap());
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
        let ask = format!(r#"{{"policy":"{policy}","key":"{verb}","{field}":"{second}"}}"#);
        for changed in [true, false] {
            let undone = daemon.post(&format!("/v1/{undo}"), &ask).await.body;
            assert!(undone.contains(&format!(r#""changed":{changed}"#)), "{undone}");
        }
    }
}

#[tokio::test]
async fn a_repeat_with_a_request_id_gets_the_id_that_was_drawn_first() {
    let daemon = Daemon::start().await;
    for (verb, policy, field) in [
        ("check", "slots", "lease_id"),
        ("acquire", "slots", "lease_id"),
        ("reserve", "bucket", "reservation_id"),
    ] {
        let ask = format!(r#"{{"policy":"{policy}","key":"k","request_id":"{verb}"}}"#);
        let first = daemon.post(&format!("/v1/{verb}"), &ask).await;
        let again = daemon.post(&format!("/v1/{verb}"), &ask).await;
        assert_eq!((first.status, again.status), (200, 200), "{}", again.body);
        assert_eq!(text(&first.body, field), text(&again.body, field), "{verb}");
        assert!(text(&first.body, field).is_some(), "{}", first.body);
        assert!(again.body.contains(r#""replayed":true"#), "{}", again.body);
    }
}
