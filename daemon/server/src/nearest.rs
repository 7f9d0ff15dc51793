//! The known name that a mistyped one comes nearest to.

/// `did you mean "…"?`, if a known name is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    // Longer names cannot be near any of ours, and cost time.
    if name.len() > 64 {
        return None;
    }
    let near = known.map(|x| (strsim::osa_distance(name, x), x)).min()?;
    let most = 1 + near.1.len() / 4;
    (near.0 <= most).then(|| format!("did you mean \"{}\"?", near.1))
}
