//! Several limits at once, made-up traffic, and the files that are written.

use crate::process::{Directory, report, run};

#[test]
fn each_alternative_is_as_if_it_were_alone() {
    let directory = Directory::new();
    let log = directory.path("made-up.log");
    let traffic = "poisson rate 200/s for 20s keys 30 seed 3";
    let made = run(["--generate", traffic, "--write-log", log.to_str().unwrap()]);
    assert_eq!(made, (0, String::new(), String::new()));
    let limits = ["5/s", "20/10s fixed", "30/10s sliding", "3/s; 40/10s log", "4/s queue 2"];
    let together: Vec<&str> = limits.iter().flat_map(|limit| ["--limit", limit]).collect();
    let together = report(&log, &together);
    for (place, limit) in limits.iter().enumerate() {
        let alone = report(&log, &["--limit", limit]);
        assert_eq!(together["outcomes"][place], alone["outcomes"][0], "{limit}");
        // A thread for each key or one for all: it is the same.
        let on_three = report(&log, &["--limit", limit, "--threads", "3"]);
        assert_eq!(on_three["outcomes"][0]["worst"], alone["outcomes"][0]["worst"], "{limit}");
        assert_ne!(alone["outcomes"][0]["denied"]["requests"], 0, "{limit}");
    }
}

/// Keys that ask alike are told in one order, whichever thread has them.
#[test]
fn a_report_is_the_same_on_any_number_of_threads() {
    let directory = Directory::new();
    for traffic in ["bursts rate 60/s for 5min keys 60", "poisson rate 100/s for 1min keys 40"] {
        let log = directory.path("made-up.log");
        run(["--generate", traffic, "--write-log", log.to_str().unwrap()]);
        let limits = ["--limit", "20/min fixed", "--limit", "10/min burst 3", "--suggest", "20%"];
        let on = |threads| {
            let mut report = report(&log, &[&limits[..], &["--threads", threads]].concat());
            report["source"]["command"].take();
            report
        };
        for threads in ["2", "3", "7"] {
            let (several, one) = (on(threads), on("1"));
            for field in several.as_object().unwrap().keys() {
                assert_eq!(several[field], one[field], "{field} of {traffic}, {threads} threads");
            }
        }
    }
}

#[test]
fn made_up_traffic_is_the_same_as_its_log() {
    let directory = Directory::new();
    let traffic = "stampede rate 5/s for 3min keys 3";
    let (code, output, _) = run(["--generate", traffic, "--limit", "20/min fixed", "-o", "json"]);
    assert_eq!(code, 0);
    let made_up: serde_json::Value = serde_json::from_str(&output).unwrap();
    let log = directory.path("made-up.log");
    run(["--generate", traffic, "--write-log", log.to_str().unwrap()]);
    let read = report(&log, &["--limit", "20/min fixed"]);
    assert_eq!(made_up["offered"], read["offered"]);
    assert_eq!(made_up["keys"], read["keys"]);
}

#[test]
fn every_output_is_written() {
    let directory = Directory::new();
    let (page, picture) = (directory.path("r.html"), directory.path("p.svg"));
    for which in ["time", "burst", "peaks"] {
        let arguments =
            ["--generate", "bursts rate 2/s for 1min keys 1", "--limit", "10/min fixed"];
        let outputs = ["--report", page.to_str().unwrap(), "--svg", picture.to_str().unwrap()];
        let picked = ["--picture", which, "--suggest", "0"];
        let (code, output, complaint) = run([&arguments[..], &outputs, &picked].concat());
        assert_eq!((code, &*complaint), (0, ""));
        assert!(output.contains("10/min fixed"), "{output}");
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains("<html") && page.contains("tollgate replay --generate"), "{page}");
        assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"), "{which}");
    }
}
