//! The key of a descriptor under a policy of our own.

/// Writes `user=7;route=%2525`: no two descriptors have the same.
pub(super) fn key(entries: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            text.push(';');
        }
        escape(key, &mut text);
        text.push('=');
        escape(value, &mut text);
    }
    text
}

fn escape(text: &str, to: &mut String) {
    for it in text.chars() {
        match it {
            '%' => to.push_str("%25"),
            ';' => to.push_str("%3B"),
            '=' => to.push_str("%3D"),
            _ => to.push(it),
        }
    }
}
