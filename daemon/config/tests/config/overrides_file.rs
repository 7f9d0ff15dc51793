//! Files of overrides: their contents, and the report for every mistake.

use tollgate::{MAX_OVERRIDES, Overrides, Policies};
use tollgate_config::read_overrides;
use tollgate_testkit::Folder;

/// The errors for a file, without its directory.
fn errors(name: &str, contents: impl AsRef<[u8]>) -> Vec<String> {
    let folder = Folder::create();
    let errors = read_overrides(&folder.write(name, contents)).unwrap_err();
    let prefix = format!("{}/", folder.path().display());
    errors.iter().map(|error| error.to_string().replace(&prefix, "")).collect()
}

fn limits_of(rows: &Overrides, key: &str) -> String {
    let mut policies = Policies::new();
    policies.define("api", "10/s").unwrap();
    policies.set_overrides("api", rows).unwrap();
    let policy = policies.resolve("api", key.as_bytes(), None).unwrap();
    policy.listed(key.as_bytes()).map_or_else(|| policy.to_string(), |_| "unlimited".to_owned())
}

#[test]
fn csv_and_json_lines_are_equivalent() {
    let csv = "key,limits\nvip,100/s; 1000/h\nbot-*,1/s\n10.0.0.0/8,unlimited\n\"a,\"\"b\",2/s\n";
    let json = concat!(
        r#"{"key":"vip","limits":["100/s","1000/h"]}"#,
        "\n",
        r#"{"key":"bot-*","limits":"1/s"}"#,
        "\n\n  ",
        r#"{"limits":["unlimited"],"key":"10.0.0.0/8"}"#,
        "\r\n",
        r#"{"key":"a,\"b","limits":["2/s"]}"#,
    );
    let crlf = csv.replace('\n', "\r\n");
    let with_bom = format!("\u{feff}{csv}");
    let swapped =
        "limits, key\n\"100/s;1000/h\",vip\n1/s,bot-*\nunlimited,10.0.0.0/8\n\n2/s,\"a,\"\"b\"";
    let folder = Folder::create();
    for (name, contents) in [
        ("a.csv", csv),
        ("a.csv", &crlf),
        ("a.csv", &with_bom),
        ("a.csv", swapped),
        ("a", csv),
        ("a.txt", json),
        ("a.jsonl", json),
        ("a.ndjson", json),
        ("a.json", json),
    ] {
        let file = folder.write(name, contents);
        let rows = read_overrides(&file).unwrap_or_else(|error| panic!("{name}: {}", error[0]));
        assert_eq!(rows.len(), 4, "{contents}");
        for (key, limits) in [
            ("vip", "100/s; 1000/h"),
            ("bot-1", "1/s"),
            ("10.1.1.1", "unlimited"),
            ("a,\"b", "2/s"),
            ("user", "10/s"),
        ] {
            assert_eq!(limits_of(&rows, key), limits, "{key} {contents}");
        }
    }
}

/// Name, contents, expected errors.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "a.csv",
        "",
        "a.csv: the file is empty; write the header key,limits, or remove overrides_file",
    ),
    ("a.csv", "id,limit\nvip,1/s\n", r#"a.csv:1: "id,limit": expected the header key,limits"#),
    ("a.csv", "vip,1/s\n", r#"a.csv:1: "vip,1/s": expected the header key,limits"#),
    (
        "a.csv",
        "key,limits,note\nvip,1/s,x\n",
        r#"a.csv:1: "key,limits,note": expected the header key,limits"#,
    ),
    (
        "a.csv",
        "key,limits\nvip,1/s,10/h\n",
        "a.csv:2: 3 fields, expected a key and limits; quote a value that contains a comma, and join limits with ;",
    ),
    (
        "a.csv",
        "key,limits\nvip\n",
        "a.csv:2: 1 field, expected a key and limits; quote a value that contains a comma, and join limits with ;",
    ),
    (
        "a.csv",
        "key,limits\n\"a\nb\",1/s\n10.0.0.1/8,1/s\n",
        r#"a.csv:4: key: "10.0.0.1/8": the address has bits set beyond the prefix length; write 10.0.0.0/8"#,
    ),
    (
        "a.csv",
        "key,limits\n,1/s\n",
        r#"a.csv:2: key: "": the pattern is empty; write a key such as user:42"#,
    ),
    (
        "a.csv",
        "key,limits\nvip,10/s burts 3\n",
        r#"a.csv:2: limits: in "10/s burts 3", column 6: unknown word "burts"; did you mean "burst"? (write unlimited for no limit)"#,
    ),
    (
        "a.csv",
        "key,limits\nvip,1/s\nb,1/s\n\nvip,2/s\n",
        r#"a.csv:5: key: "vip": line 2 has the same key; remove one of the two"#,
    ),
    (
        "a.csv",
        "\r\nkey,limits\r\n\r\nvip,1/s\r\n\"a\r\nb\",1/s\r\n\r\n\r\nvip,2/s",
        r#"a.csv:9: key: "vip": line 4 has the same key; remove one of the two"#,
    ),
    (
        "a.jsonl",
        "{\"key\":\"vip\",\"limits\":\"1/s\"}\n\n{\"key\":\"vip\",\"limits\":\"2/s\"}",
        r#"a.jsonl:3: key: "vip": line 1 has the same key; remove one of the two"#,
    ),
    (
        "a.jsonl",
        "{\"key\":\"vip\",\"limit\":\"1/s\"}",
        r#"a.jsonl:1:20: "{\"key\":\"vip\",\"limit\":\"1/s\"}": unknown field `limit`, expected `key` or `limits`"#,
    ),
    (
        "a.jsonl",
        "{\"key\":\"vip\",\"limits\":1}",
        r#"a.jsonl:1:23: "{\"key\":\"vip\",\"limits\":1}": invalid type: integer `1`, expected limits in quotes, such as "100/s" or ["100/s", "1000/h"]"#,
    ),
    (
        "a.jsonl",
        "{\"key\":\"vip\"",
        r#"a.jsonl:1:12: "{\"key\":\"vip\"": EOF while parsing an object"#,
    ),
];

#[test]
fn errors_contain_line_field_and_value() {
    for (name, contents, expected) in WRONG {
        assert_eq!(errors(name, contents), [*expected]);
    }
    let bytes = errors("a.csv", b"key,limits\na\xff,1/s\n");
    assert_eq!(bytes, ["a.csv:2: key: \"a\u{fffd}\": invalid UTF-8"]);
    let errors = read_overrides(&std::env::temp_dir().join("tollgate-no-such-file.csv"));
    let error = errors.unwrap_err().remove(0);
    assert!(error.message.starts_with("cannot be read: "), "{error}");
    assert_eq!((error.line, error.field), (None, None));
}

#[test]
fn at_most_twenty_errors_are_reported() {
    let mut csv = "key,limits\n".to_owned();
    for n in 0..100 {
        csv.push_str(&format!("k{n},{n}\n"));
    }
    let messages = errors("a.csv", csv);
    assert_eq!(messages.len(), 20);
    assert!(messages[19].starts_with("a.csv:21: limits: "), "{}", messages[19]);
}

#[test]
fn a_million_rows_are_read_and_one_more_is_an_error() {
    let mut csv = "key,limits\n".to_owned();
    for n in 0..MAX_OVERRIDES {
        csv.push_str(&format!("customer:{n:08},{}/s\n", 1 + n % 7));
    }
    let folder = Folder::create();
    let rows = read_overrides(&folder.write("a.csv", &csv)).unwrap();
    assert_eq!(rows.len(), MAX_OVERRIDES);
    for (key, limits) in
        [("customer:00000000", "1/s"), ("customer:00999999", "1/s"), ("customer:00000006", "7/s")]
    {
        assert_eq!(limits_of(&rows, key), limits);
    }
    assert_eq!(limits_of(&rows, "customer:01000000"), "10/s");
    csv.push_str("one more,1/s\nand another,1/s\n");
    let messages = errors("a.csv", &csv);
    assert_eq!(
        messages,
        ["a.csv:1000002: more than 1000000 overrides; match several keys with one row, such as \
              bot-*, or use tiers"]
    );
}
