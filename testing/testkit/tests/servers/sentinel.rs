//! Sentinel.

use tollgate_testkit::{Reply, Sentinel};

#[test]
fn sentinels_promote_the_replica_after_the_primary_fails() {
    let sentinel = Sentinel::start();
    let [first, second] = sentinel.servers() else { panic!("two servers") };
    assert!(sentinel.url().starts_with("redis+sentinel://127.0.0.1:"));
    assert!(sentinel.url().ends_with("/mymaster"));
    assert_eq!((sentinel.url().matches(',').count(), sentinel.sentinels().len()), (2, 3));
    assert_eq!(sentinel.primary_port(), first.port());
    assert_eq!(first.command(&["SET", "k", "v"]), Reply::ok());
    assert_eq!(first.command(&["WAIT", "1", "5000"]), Reply::Integer(1));

    assert_eq!(sentinel.kill_primary().port(), first.port());
    sentinel.settle();
    assert_eq!(sentinel.primary().port(), second.port());
    assert_eq!(second.command(&["GET", "k"]).text(), "v");
}
