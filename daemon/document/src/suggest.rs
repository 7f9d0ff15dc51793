//! Suggestions for mistyped names.

/// The text `did you mean "…"?` with the known name that is closest to `name`, if one is close.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    // No known name is this long, and the distance takes quadratic time.
    if name.len() > 64 {
        return None;
    }
    let near = known.map(|x| (strsim::osa_distance(name, x), x)).min()?;
    let most = 1 + near.1.len() / 4;
    (near.0 <= most).then(|| format!("did you mean \"{}\"?", near.1))
}
