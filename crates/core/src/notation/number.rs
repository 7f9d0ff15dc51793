//! Remedies for numbers that are not decimal digits.

use alloc::string::String;
use core::fmt;

use super::display::Length;
use super::token::{is_separator, is_sign_or_point};
use super::words;
use crate::time::Micros;

/// Writes the fault of a number and how to write the number instead.
pub(super) fn write_remedy(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    let unsigned = word.trim_start_matches(|word| word != '.' && is_sign_or_point(word));
    let plain: String = unsigned.chars().filter(|c| !is_separator(*c)).collect();
    if unsigned.len() < word.len() && is_whole(unsigned) {
        return write!(f, "has a sign; write {unsigned}");
    }
    if let Some(number) = exponent(unsigned) {
        return write!(f, "has an exponent; write {number}");
    }
    if plain.len() < unsigned.len() && is_grouped(unsigned) && is_whole(&plain) {
        return write!(f, "has separators between its digits; write {plain}");
    }
    if let Some((digits, fraction)) = unsigned.split_once(['.', ',']) {
        return write_fraction(f, digits, fraction);
    }
    if let Some(sum) = sum_of_units(unsigned) {
        return write!(f, "has several units; write {}", Length(sum));
    }
    f.write_str("is not a number; write decimal digits only, as in 1000")
}

/// Parses decimal digits.
fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Splits a text after its leading digits.
fn split(text: &str) -> (&str, &str) {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.split_at(text.len() - behind.len())
}

/// Whether the text is digits and perhaps a unit.
fn is_whole(text: &str) -> bool {
    let (number, unit) = split(text);
    digits(number).is_some() && (unit.is_empty() || words::unit(unit).is_some())
}

fn exponent(text: &str) -> Option<u64> {
    let (number, power) = text.split_once(['e', 'E'])?;
    let power = digits(power.strip_prefix('+').unwrap_or(power))?;
    digits(number)?.checked_mul(10_u64.checked_pow(u32::try_from(power).ok()?)?)
}

/// Whether commas only separate groups of three digits. Any other comma is a decimal point.
fn is_grouped(text: &str) -> bool {
    !text.contains(',') || text.split(',').skip(1).all(|part| split(part).0.len() == 3)
}

fn write_fraction(f: &mut fmt::Formatter<'_>, whole: &str, behind: &str) -> fmt::Result {
    f.write_str("has a decimal point; ")?;
    let (fraction, unit) = split(behind);
    let number = if whole.is_empty() { Some(0) } else { digits(whole) };
    if let Some(length) = number.and_then(|number| fraction_of_unit(number, fraction, unit)) {
        return write!(f, "write {}", Length(length));
    }
    match number {
        Some(number) if unit.is_empty() && fraction.bytes().all(|byte| byte == b'0') => {
            write!(f, "write {number}")
        }
        _ => f.write_str(
            "take a longer window or a smaller unit, as in 3/2s for 1.5/s or 90min for 1.5h",
        ),
    }
}

/// The duration of `number.fraction` units, if that is whole milliseconds.
fn fraction_of_unit(number: u64, fraction: &str, unit: &str) -> Option<Micros> {
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = if fraction.is_empty() { 0 } else { digits(fraction)? };
    let scaled =
        number.checked_mul(scale)?.checked_add(fraction)?.checked_mul(words::unit(unit)?)?;
    scaled.is_multiple_of(scale.checked_mul(1_000)?).then(|| Micros::new(scaled / scale))
}

/// The sum of a chain such as `1h30m`.
fn sum_of_units(mut text: &str) -> Option<Micros> {
    let mut sum = 0_u64;
    while !text.is_empty() {
        let (number, behind) = split(text);
        text = behind.trim_start_matches(|c: char| !c.is_ascii_digit());
        let unit = words::unit(&behind[..behind.len() - text.len()])?;
        sum = sum.checked_add(digits(number)?.checked_mul(unit)?)?;
    }
    Some(Micros::new(sum))
}
