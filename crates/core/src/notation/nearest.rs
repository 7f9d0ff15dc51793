//! The known word that somebody most likely meant.

use alloc::vec::Vec;

/// The nearest of these words, if it is near enough to be meant: an abbreviation, a word with its
/// number grown on, or a slip of the pen.
pub(super) fn nearest(
    word: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let stem = word.split(|c: char| c.is_numeric() || matches!(c, '=' | ':')).next()?;
    let meant = |text: &&str| *text == stem || (word.len() > 2 && text.starts_with(&word));
    known.clone().find(meant).or_else(|| {
        known
            .filter_map(|x| Some((distance(&word, x)?, x)))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, x)| x)
    })
}

/// How many letters were added, left out, changed or swapped with their neighbour; none if too
/// many for words of this length. (Optimal string alignment.)
fn distance(word: &str, known: &str) -> Option<usize> {
    let word: Vec<char> = word.chars().take(known.len() + 3).collect();
    let known: Vec<char> = known.chars().collect();
    let most = word.len().min(known.len()).saturating_sub(1) / 2;
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
    above.last().copied().filter(|above| *above <= most.min(2))
}
