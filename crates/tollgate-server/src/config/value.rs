//! Values of the file: what a text means where it stands.

use std::str::FromStr;
use std::time::Duration;

use tollgate::parse_duration;

use super::error::ConfigError;
use super::file::Text;

/// The shortest time that most fields take.
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// Reads a value if it is there; says which field it is if it cannot be read.
pub(super) fn set<T>(
    place: &mut T,
    text: Option<&Text>,
    field: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<(), ConfigError> {
    let Some(text) = text else { return Ok(()) };
    *place = read(&text.value).map_err(|remedy| {
        let value = format!("{:?}", text.value);
        // What is said of a limit shows it already.
        let message = if remedy.contains(&value) { remedy } else { format!("{value}: {remedy}") };
        ConfigError::new(message).of(field).at(text.referenced)
    })?;
    Ok(())
}

/// A length of time from `least` on, such as `10s`.
pub(super) fn duration(least: Duration) -> impl FnOnce(&str) -> Result<Duration, String> {
    move |text| {
        let read: Duration = parse_duration(text).map_err(|it| it.to_string())?.into();
        if read < least { Err(format!("it must be at least {least:?}")) } else { Ok(read) }
    }
}

/// A count from `least` to `most`.
pub(super) fn count(least: usize, most: usize) -> impl FnOnce(&str) -> Result<usize, String> {
    move |text| {
        let read = digits(text).filter(|it| (least..=most).contains(it));
        read.ok_or_else(|| match most {
            usize::MAX => format!("write a number of at least {least}, in digits"),
            most => format!("write a number from {least} to {most}, in digits"),
        })
    }
}

/// A number of bytes from `least` to `most`, such as `64KiB`.
pub(super) fn bytes(least: usize, most: usize) -> impl FnOnce(&str) -> Result<usize, String> {
    move |text| {
        let at = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(at);
        let scale = match unit.trim() {
            "" | "B" => Some(1),
            "KiB" => Some(1024),
            "MiB" => Some(1024 * 1024),
            _ => None,
        };
        let read = digits(number).zip(scale).and_then(|(it, scale)| it.checked_mul(scale));
        read.filter(|it| (least..=most).contains(it))
            .ok_or_else(|| format!("write a number of bytes from {least} to {most}, such as 64KiB"))
    }
}

/// `true` or `false`.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "write true or false".to_owned())
}

/// One of some words.
pub(super) fn word<T: Copy>(words: &[(&str, T)]) -> impl FnOnce(&str) -> Result<T, String> {
    move |text| {
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, it)| *it);
        found.ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            format!("write {}", words.join(" or "))
        })
    }
}

/// A place to listen at, as `HOST:PORT`.
pub(super) fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let is_port = |it: &str| u16::from_str(it).is_ok();
    if port.is_some_and(|(_, port)| is_port(port)) {
        return Ok(text.to_owned());
    }
    Err("write HOST:PORT, such as 127.0.0.1:8080".to_owned())
}

fn digits(text: &str) -> Option<usize> {
    // `parse` takes a plus sign too.
    text.parse().ok().filter(|_| text.bytes().all(|it| it.is_ascii_digit()))
}
