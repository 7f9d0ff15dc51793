//! Several limits, synthetic traffic, and output files.

use tollgate_testkit::Folder;

use crate::tool::{report, run};

#[test]
fn limits_do_not_affect_each_other() {
    let folder = Folder::create();
    let log = folder.join("synthetic.log");
    let traffic = "poisson rate 200/s for 20s keys 30 seed 3";
    let made = run(["--generate", traffic, "--write-log", log.to_str().unwrap()]);
    assert_eq!(made, (0, String::new(), String::new()));
    let limits = ["5/s", "20/10s fixed", "30/10s sliding", "3/s; 40/10s log", "4/s queue 2"];
    let sequential: Vec<&str> = limits.iter().flat_map(|limit| ["--limit", limit]).collect();
    let sequential = report(&log, &sequential);
    for (place, limit) in limits.iter().enumerate() {
        let alone = report(&log, &["--limit", limit]);
        assert_eq!(sequential["outcomes"][place], alone["outcomes"][0], "{limit}");
        // The number of threads does not matter.
        let on_three = report(&log, &["--limit", limit, "--threads", "3"]);
        assert_eq!(on_three["outcomes"][0]["worst"], alone["outcomes"][0]["worst"], "{limit}");
        assert_ne!(alone["outcomes"][0]["denied"]["requests"], 0, "{limit}");
    }
}

/// Keys with equal counts have a fixed order, independent of their threads.
#[test]
fn a_report_does_not_depend_on_the_number_of_threads() {
    let folder = Folder::create();
    for traffic in ["bursts rate 60/s for 5min keys 60", "poisson rate 100/s for 1min keys 40"] {
        let log = folder.join("synthetic.log");
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
fn synthetic_traffic_equals_its_log() {
    let folder = Folder::create();
    let traffic = "stampede rate 5/s for 3min keys 3";
    let (code, output, _) = run(["--generate", traffic, "--limit", "20/min fixed", "-o", "json"]);
    assert_eq!(code, 0);
    let synthetic: serde_json::Value = serde_json::from_str(&output).unwrap();
    let log = folder.join("synthetic.log");
    run(["--generate", traffic, "--write-log", log.to_str().unwrap()]);
    let read = report(&log, &["--limit", "20/min fixed"]);
    assert_eq!(synthetic["offered"], read["offered"]);
    assert_eq!(synthetic["keys"], read["keys"]);
}

#[test]
fn every_output_file_is_written() {
    let folder = Folder::create();
    let (page, picture) = (folder.join("r.html"), folder.join("p.svg"));
    for which in ["time", "burst", "peaks"] {
        let arguments =
            ["--generate", "bursts rate 2/s for 1min keys 1", "--limit", "10/min fixed"];
        let outputs = ["--report", page.to_str().unwrap(), "--svg", picture.to_str().unwrap()];
        let picked = ["--picture", which, "--suggest", "0"];
        let (code, output, error) = run([&arguments[..], &outputs, &picked].concat());
        assert_eq!((code, &*error), (0, ""));
        assert!(output.contains("10/min fixed"), "{output}");
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains("<html") && page.contains("tollgate replay --generate"), "{page}");
        assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"), "{which}");
    }
}
