//! What is wrong is said before any work, with what to write.

use crate::process::{Directory, run};

#[test]
fn each_mistake_is_named_with_its_remedy() {
    let directory = Directory::new();
    let log = directory.file("log.csv", "time,key\n1,a\n");
    let log = log.to_str().unwrap();
    let nothing = directory.file("no.log", "once upon a time\n");
    let nothing = nothing.to_str().unwrap();
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
        (&[log, "--limit", "5 concurrent lease 1s"], "a log does not say when a request ended"),
        (&["/nowhere.log", "--limit", "1/s"], "/nowhere.log"),
        (&[nothing, "--limit", "1/s"], "--format common|combined|json|csv"),
        (&[log, "--limit", "1/s", "--svg", "/nowhere/p.svg"], "/nowhere/p.svg"),
        (&[log, "--limit", "1/s", "--report", "/nowhere/p.html"], "/nowhere/p.html"),
        (&[log, "--limit", "1/s", "--decisions", "/nowhere/d"], "/nowhere/d"),
        (&["--generate", "zigzag", "--limit", "1/s"], "--generate \"zigzag\": "),
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
