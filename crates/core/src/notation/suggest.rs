//! Suggestions for unknown words.

use alloc::vec::Vec;

/// The known word that an unknown word most likely means: one that it abbreviates, one that it joins
/// with a number, or one with a typing error.
pub(super) fn suggest(
    word: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let stem = word.split(|c: char| c.is_numeric() || matches!(c, '=' | ':')).next()?;
    let is_meant = |text: &&str| *text == stem || (word.len() > 2 && text.starts_with(&word));
    known.clone().find(is_meant).or_else(|| {
        known
            .filter_map(|x| Some((distance(&word, x)?, x)))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, x)| x)
    })
}

/// The optimal string alignment distance, or `None` if it is too large for words of this length.
fn distance(word: &str, known: &str) -> Option<usize> {
    let word: Vec<char> = word.chars().take(known.len() + 3).collect();
    let known: Vec<char> = known.chars().collect();
    let max = word.len().min(known.len()).saturating_sub(1) / 2;
    let (mut before, mut above) = (Vec::new(), Vec::from_iter(0..=known.len()));
    for (i, letter) in word.iter().enumerate() {
        let mut row = Vec::from([i + 1]);
        for (j, other) in known.iter().enumerate() {
            let changed = above[j] + usize::from(letter != other);
            let mut least = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == known[j - 1] && word[i - 1] == *other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        (before, above) = (above, row);
    }
    above.last().copied().filter(|above| *above <= max.min(2))
}
