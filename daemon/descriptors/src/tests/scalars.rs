//! Plain scalars of YAML 1.1.

use super::super::yaml::Scalar;

#[test]
fn plain_scalars_follow_yaml_1_1() {
    let rows = [
        ("", "!!null <nil>"),
        ("~", "!!null <nil>"),
        ("yes", "!!bool true"),
        ("On", "!!bool true"),
        ("N", "!!bool false"),
        ("yEs", "!!str yEs"),
        ("1", "!!int 1"),
        ("-1", "!!int -1"),
        ("+1", "!!int 1"),
        ("1_000", "!!int 1000"),
        ("010", "!!int 8"),
        ("0o10", "!!int 8"),
        ("0x1F", "!!int 31"),
        ("-0b11", "!!int -3"),
        ("08", "!!float 8"),
        ("9223372036854775807", "!!int 9223372036854775807"),
        ("-9223372036854775808", "!!int -9223372036854775808"),
        ("18446744073709551615", "!!int 18446744073709551615"),
        ("18446744073709551616", "!!float 1.8446744073709552e+19"),
        ("1.50", "!!float 1.5"),
        (".5", "!!float 0.5"),
        ("1e3", "!!float 1000"),
        ("123456.5", "!!float 123456.5"),
        ("1e6", "!!float 1e+06"),
        ("0.00001", "!!float 1e-05"),
        (".inf", "!!float +Inf"),
        ("-.Inf", "!!float -Inf"),
        (".nan", "!!float NaN"),
        ("1.2.3", "!!str 1.2.3"),
        ("10/s", "!!str 10/s"),
        ("-", "!!str -"),
        (".", "!!str ."),
        ("+-1", "!!str +-1"),
        ("0x", "!!str 0x"),
        ("0x+1", "!!str 0x+1"),
        ("2024-01-02", "!!str 2024-01-02"),
        ("infinity", "!!str infinity"),
    ];
    for (text, expected) in rows {
        let scalar = Scalar::parse(text, false);
        assert_eq!(format!("{} {scalar}", scalar.tag()), expected, "{text}");
        assert_eq!(Scalar::parse(text, true), Scalar::Text(text));
    }
}
