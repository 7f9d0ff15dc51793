//! Estimates the width of texts without a font.

/// The maximum width of a text in the unit of its size. The generic font family differs between readers, so
/// the widest of the usual fonts is assumed.
pub(super) fn width(text: &str, size: i32, is_bold: bool) -> i32 {
    let thousandths: i64 = text.chars().map(|letter| thousandths(letter, is_bold)).sum();
    i32::try_from(thousandths * i64::from(size) / 1_000).unwrap_or(i32::MAX)
}

/// The width of a letter in thousandths of its height.
fn thousandths(letter: char, is_bold: bool) -> i64 {
    let width = match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 330,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '\\' | '-' => 400,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 980,
        'A'..='Z' => 720,
        ' '..='~' => 610,
        '\u{1100}'.. => 1_050,
        _ => 680,
    };
    if is_bold { width * 11 / 10 } else { width }
}

/// The beginning of a text that fits, followed by `…`.
pub(super) fn shorten(text: &str, room: i32, width: impl Fn(&str) -> i32) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut shortened = String::new();
    let room = room.saturating_sub(width("…"));
    for letter in text.chars() {
        shortened.push(letter);
        if width(&shortened) > room {
            shortened.pop();
            break;
        }
    }
    shortened.push('…');
    shortened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_the_available_width() {
        for (text, room, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 0, ""), ("abc", 0, "…"), ("äöü", 2, "ä…")]
        {
            let width = |text: &str| i32::try_from(text.chars().count()).unwrap();
            assert_eq!(shorten(text, room, width), expected, "{text}");
        }
    }
}
