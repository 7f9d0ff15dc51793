//! Invalid arguments are rejected before any work, with a hint.

use tollgate_testkit::Folder;

use crate::tool::run;

#[test]
fn each_mistake_is_rejected_with_a_hint() {
    let folder = Folder::create();
    let write = |name, text| folder.write(name, text).display().to_string();
    let log = &*write("log.csv", "time,key\n1,a\n");
    let nothing = &*write("no.log", "once upon a time\n");
    let unnamed = &*write("no.csv", "when,who\n1,a\n");
    let config = &*write("t.yaml", "policies: { api: { limits: [10/s] } }\n");
    let directory = folder.to_str().unwrap();
    let many: Vec<&str> = std::iter::repeat_n(["--limit", "1/s"], 17).flatten().collect();
    let rows: &[(&[&str], &str)] = &[
        (&[log], "no limits to try; use --limit"),
        (&[log, "--limit", "10/parsec"], "--limit \"10/parsec\": "),
        (&[log, "--policy", "api"], "--config <FILE>"),
        (&[log, "--config", config, "--policy", "apl"], "--policy \"apl\": "),
        (&[log, "--limit", "1/s", "--key", "{ipp}"], "--key \"{ipp}\": "),
        (&[log, "--limit", "1/s", "--reorder", "soon"], "--reorder \"soon\": "),
        (&[log, "--limit", "1/s", "--suggest", "200%"], "--suggest \"200%\": "),
        (&[log, "--limit", "1/s", "--field", "tme=t"], "--field \"tme=t\": "),
        (&[log, "--limit", "5 concurrent lease 1s"], "does not contain the end of requests"),
        (
            &["--generate", "steady", "--limit", "5 concurrent lease 1s"],
            "does not contain the end of requests",
        ),
        (&["/nowhere.log", "--limit", "1/s"], "/nowhere.log"),
        (&[nothing, "--limit", "1/s"], "--format common|combined|json|csv"),
        (&[log, "--limit", "1/s", "--svg", "/nowhere/p.svg"], "/nowhere/p.svg"),
        (&[log, "--limit", "1/s", "--report", "/nowhere/p.html"], "/nowhere/p.html"),
        (&[log, "--limit", "1/s", "--decisions", "/nowhere/d"], "/nowhere/d"),
        (&["--generate", "zigzag", "--limit", "1/s"], "--generate \"zigzag\": "),
        (&[log, "--limit", "1/s", "--key", "ip"], "--key \"ip\": use {ip}"),
        (
            &[log, "--limit", "1/s", "--format", "clf"],
            "[possible values: common, combined, json, csv]",
        ),
        (&[log, "--limit", "1/s", "--time-unit", "min"], "[possible values: s, ms, us, ns]"),
        (&[log, "--limit", "1/s", "--threads", "0"], "0 is not in 1..=1024"),
        (&[unnamed, "--limit", "1/s"], "start CSV with a line that names its columns"),
        (&[directory, "--limit", "1/s"], "cannot read "),
        (&["--generate", "steady", "--limit", "1/s", "--decisions", "/nowhere/d"], "--decisions"),
        (&["--generate", "steady", "--limit", "1/s", "--store", "memory"], "--store"),
        (&[log, "--config", config, "--rules", "--suggest", "1%"], "--suggest"),
        (&["--limit", "1/s"], "LOG"),
        (&[log, "--limit", "1/s", "--store", "redis://127.0.0.1:1"], "redis://127.0.0.1:1"),
        (&[&[log][..], &many].concat(), "17 limits to compare are too many; at most 16"),
    ];
    for (arguments, message) in rows {
        let (code, output, error) = run(*arguments);
        assert_eq!((code, &*output), (2, ""), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn worst_limits_the_number_of_listed_keys() {
    for named in [0, 3, 7] {
        let worst = named.to_string();
        let traffic = ["--generate", "bursts rate 100/s for 1min keys 10", "--limit", "1/min"];
        let (_, output, _) = run([&traffic[..], &["--worst", &worst]].concat());
        let rows = output.lines().filter(|line| line.starts_with("  user:")).count();
        assert_eq!(rows, named, "{output}");
    }
}

#[test]
fn a_log_without_a_decided_line_is_a_failure() {
    let folder = Folder::create();
    let config = folder.write(
        "t.yaml",
        "policies: { api: { limits: [10/s] } }\nrules: [{ match: { path: /a }, policy: api, key: all }]\n",
    );
    let config = config.to_str().unwrap();
    let line = "10.0.0.1 - - [20/Nov/2025:12:00:00 +0000] \"GET /b HTTP/1.1\" 200 5\n";
    let rows: &[(&str, &[&str], i32, &str)] = &[
        ("", &["--limit", "1/s"], 0, ""),
        ("{\"t\":1}\n", &["--limit", "1/s"], 2, "no line could be read"),
        (line, &["--limit", "1/s", "--key", "{header.x}"], 2, "no line had a key; --key selects"),
        (line, &["--config", config, "--rules"], 2, "no rule matched any line"),
    ];
    for (text, arguments, expected, message) in rows {
        let log = folder.write("a.log", text);
        let (code, output, error) = run([&[log.to_str().unwrap()], *arguments].concat());
        assert_eq!(code, *expected, "{arguments:?}: {error}");
        assert!(output.contains("a.log") && output.contains("0 requests of 0 keys"), "{output}");
        assert!(!output.contains("were spread"), "{output}");
        assert!(error.contains(message), "{error}");
    }
}
