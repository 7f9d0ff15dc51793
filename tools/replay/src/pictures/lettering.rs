//! Letters where no font is at hand: how wide a text becomes, and how it is written in XML.

/// How wide a text becomes, at most, in the unit of its size. Readers have different fonts for one
/// generic family; the widest of the usual ones is assumed.
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

/// As much of a text as fits, with `…` for the rest.
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

/// A text as XML and HTML take it, between tags and in quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // What XML 1.0 cannot hold at all.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_its_room_ends() {
        for (text, room, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 0, ""), ("abc", 0, "…"), ("äöü", 2, "ä…")]
        {
            let width = |text: &str| i32::try_from(text.chars().count()).unwrap();
            assert_eq!(shorten(text, room, width), expected, "{text}");
        }
    }

    #[test]
    fn nothing_of_a_text_is_taken_for_markup() {
        for (text, expected) in [
            ("<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"),
            ("a\" onload=\"b&", "a&quot; onload=&quot;b&amp;"),
            ("\0\u{1b}\u{ffff}\n", "\u{fffd}\u{fffd}\u{fffd}\n"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
