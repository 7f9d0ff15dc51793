//! What is wrong is said before any work, with what to write.

use crate::process::{Directory, run};

#[test]
fn each_mistake_is_named_with_its_remedy() {
    let directory = Directory::new();
    let log = directory.file("log.csv", "time,key\n1,a\n");
    let log = log.to_str().unwrap();
    let nothing = directory.file("no.log", "once upon a time\n");
    let nothing = nothing.to_str().unwrap();
    let folder = directory.path("");
    let folder = folder.to_str().unwrap();
    let unnamed = directory.file("no.csv", "when,who\n1,a\n");
    let unnamed = unnamed.to_str().unwrap();
    let config = directory.file("t.yaml", "policies: { api: { limits: [10/s] } }\n");
    let config = config.to_str().unwrap();
    let many: Vec<&str> = std::iter::repeat_n(["--limit", "1/s"], 17).flatten().collect();
    let rows: &[(&[&str], &str)] = &[
        (&[log], "name what is tried: --limit"),
        (&[log, "--limit", "10/parsec"], "--limit \"10/parsec\": "),
        (&[log, "--policy", "api"], "--config <FILE>"),
        (&[log, "--config", config, "--policy", "apl"], "--policy \"apl\": "),
        (&[log, "--limit", "1/s", "--key", "{ipp}"], "--key \"{ipp}\": "),
        (&[log, "--limit", "1/s", "--reorder", "soon"], "--reorder \"soon\": "),
        (&[log, "--limit", "1/s", "--suggest", "200%"], "--suggest \"200%\": "),
        (&[log, "--limit", "1/s", "--field", "tme=t"], "--field \"tme=t\": "),
        (&[log, "--limit", "5 concurrent lease 1s"], "nothing says when a request ended"),
        (
            &["--generate", "steady", "--limit", "5 concurrent lease 1s"],
            "nothing says when a request ended",
        ),
        (&["/nowhere.log", "--limit", "1/s"], "/nowhere.log"),
        (&[nothing, "--limit", "1/s"], "--format common|combined|json|csv"),
        (&[log, "--limit", "1/s", "--svg", "/nowhere/p.svg"], "/nowhere/p.svg"),
        (&[log, "--limit", "1/s", "--report", "/nowhere/p.html"], "/nowhere/p.html"),
        (&[log, "--limit", "1/s", "--decisions", "/nowhere/d"], "/nowhere/d"),
        (&["--generate", "zigzag", "--limit", "1/s"], "--generate \"zigzag\": "),
        (&[log, "--limit", "1/s", "--key", "ip"], "--key \"ip\": write {ip}"),
        (&[log, "--limit", "1/s", "--threads", "0"], "0 is not in 1..=1024"),
        (&[unnamed, "--limit", "1/s"], "begin a CSV with a line that names its columns"),
        (&[folder, "--limit", "1/s"], "cannot be read: "),
        (&["--generate", "steady", "--limit", "1/s", "--decisions", "/nowhere/d"], "--decisions"),
        (&["--generate", "steady", "--limit", "1/s", "--store", "memory"], "--store"),
        (&[log, "--config", config, "--rules", "--suggest", "1%"], "--suggest"),
        (&["--limit", "1/s"], "LOG"),
        (&[log, "--limit", "1/s", "--store", "redis://127.0.0.1:1"], "redis://127.0.0.1:1"),
        (&[&[log][..], &many].concat(), "17 are tried side by side; at most 16 can be"),
    ];
    for (arguments, wanted) in rows {
        let (code, output, complaint) = run(*arguments);
        assert_eq!((code, &*output), (2, ""), "{arguments:?}: {complaint}");
        assert!(complaint.contains(wanted), "{arguments:?}: {complaint}");
    }
}

#[test]
fn as_many_keys_are_named_as_were_asked_for() {
    for named in [0, 3, 7] {
        let worst = named.to_string();
        let traffic = ["--generate", "bursts rate 100/s for 1min keys 10", "--limit", "1/min"];
        let (_, output, _) = run([&traffic[..], &["--worst", &worst]].concat());
        let rows = output.lines().filter(|line| line.starts_with("  user:")).count();
        assert_eq!(rows, named, "{output}");
    }
}

#[test]
fn a_log_of_which_nothing_was_decided_is_no_success() {
    let directory = Directory::new();
    let config = directory.file(
        "t.yaml",
        "policies: { api: { limits: [10/s] } }\nrules: [{ match: { path: /a }, policy: api, key: all }]\n",
    );
    let config = config.to_str().unwrap();
    let line = "10.0.0.1 - - [20/Nov/2025:12:00:00 +0000] \"GET /b HTTP/1.1\" 200 5\n";
    let rows: &[(&str, &[&str], i32, &str)] = &[
        ("", &["--limit", "1/s"], 0, ""),
        ("{\"t\":1}\n", &["--limit", "1/s"], 2, "no line could be read"),
        (line, &["--limit", "1/s", "--key", "{header.x}"], 2, "no line had a key; --key says"),
        (line, &["--config", config, "--rules"], 2, "no rule was for any line"),
    ];
    for (text, arguments, wanted, complained) in rows {
        let log = directory.file("a.log", text);
        let (code, output, complaint) = run([&[log.to_str().unwrap()], *arguments].concat());
        assert_eq!(code, *wanted, "{arguments:?}: {complaint}");
        assert!(output.contains("a.log") && output.contains("0 requests of 0 keys"), "{output}");
        assert!(!output.contains("were spread"), "{output}");
        assert!(complaint.contains(complained), "{complaint}");
    }
}
