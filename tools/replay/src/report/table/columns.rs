//! Text in columns, as wide as a terminal.

/// The least that a text may be cut to before a column is left out.
const MIN_WIDTH: usize = 16;
const GAP: &str = "  ";

/// Which side the cells of a column keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A text, which is cut where there is no room for it.
    Left,
    /// A number, which is never cut.
    Right,
    /// What says nothing new: it is left out before anything is cut.
    Spare,
}

/// Cells in columns, of which the first matter most: where there is no room the last are left out.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    heads: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub(super) fn new(heads: &[(&'static str, Side)]) -> Self {
        Columns { heads: heads.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes them, a line each, indented by a gap.
    pub(super) fn write(&self, out: &mut String, width: usize) {
        let widths = self.widths(width);
        let heads = self.heads.iter().map(|(head, _)| (*head).to_owned()).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells = row.iter().zip(&self.heads).zip(&widths);
            let line: String =
                cells.map(|((cell, (_, side)), width)| pad(cell, *side, *width)).collect();
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }

    /// How wide the columns are that have room.
    fn widths(&self, width: usize) -> Vec<usize> {
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let heads = self.heads.iter().enumerate();
        let mut widths: Vec<usize> = heads
            .map(|(at, (head, _))| {
                cells(at).map(|cell| columns(cell)).fold(columns(head), usize::max)
            })
            .collect();
        let natural = widths.clone();
        let total = |widths: &[usize]| widths.iter().map(|width| width + GAP.len()).sum::<usize>();
        loop {
            let excess = total(&widths).saturating_sub(width);
            if excess == 0 {
                return widths;
            }
            let texts = widths.iter().zip(&self.heads).enumerate();
            let texts = texts.filter(|(_, (x, (_, side)))| *side == Side::Left && **x > MIN_WIDTH);
            let longest = texts.max_by_key(|(_, (x, _))| **x).map(|(at, _)| at);
            let last = widths.len().checked_sub(1).and_then(|last| self.heads.get(last));
            let longest = longest.filter(|_| last.is_none_or(|(_, side)| *side != Side::Spare));
            match longest {
                Some(longest) => {
                    let cut = widths.get_mut(longest).into_iter();
                    cut.for_each(|cut| *cut = cut.saturating_sub(excess).max(MIN_WIDTH));
                }
                // The room of a column that is left out goes to the texts.
                None if widths.len() > 1 => {
                    widths = natural.get(..widths.len() - 1).unwrap_or_default().to_vec();
                }
                None => return widths,
            }
        }
    }
}

fn pad(cell: &str, side: Side, width: usize) -> String {
    let cell = if columns(cell) > width { cut(cell, width) } else { cell.to_owned() };
    let fill = " ".repeat(width.saturating_sub(columns(&cell)));
    match side {
        Side::Left | Side::Spare => format!("{GAP}{cell}{fill}"),
        Side::Right => format!("{GAP}{fill}{cell}"),
    }
}

/// As much of a text as fits, with `...` for the rest.
fn cut(text: &str, width: usize) -> String {
    let mut room = width.saturating_sub(3);
    let fits = |letter: &char| {
        let taken = columns_of(*letter);
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    };
    let mut shortened: String = text.chars().take_while(fits).collect();
    shortened.push_str("...");
    shortened
}

/// How many columns of a terminal a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Letters of East Asia and pictures take two.
fn columns_of(letter: char) -> usize {
    match letter {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_before_columns_are_left_out() {
        let mut value =
            Columns::new(&[("key", Side::Left), ("asked", Side::Right), ("of", Side::Right)]);
        value.row(vec!["a key of some length".to_owned(), "12,345".to_owned(), "7 %".to_owned()]);
        for (width, expected) in [
            (80, ["key asked of", "a key of some length 12,345 7 %"]),
            (33, ["key asked of", "a key of some l... 12,345 7 %"]),
            (30, ["key asked", "a key of some length 12,345"]),
            (26, ["key asked", "a key of some... 12,345"]),
            (10, ["key", "a key of some..."]),
        ] {
            let mut out = String::new();
            value.write(&mut out, width);
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let lines: Vec<_> = out.lines().map(words).collect();
            assert_eq!(lines, expected, "{width}");
            let widest = out.lines().map(columns).max();
            assert!(widest <= Some(width.max(18)), "{width}\n{out}");
        }
    }

    #[test]
    fn what_says_nothing_new_is_left_out_before_a_text_is_cut() {
        let mut columns = Columns::new(&[("limit", Side::Left), ("", Side::Spare)]);
        columns.row(vec!["10/s burst 20; 100/min".to_owned(), "####......".to_owned()]);
        for (width, expected) in
            [(36, "  10/s burst 20; 100/min  ####......"), (35, "  10/s burst 20; 100/min")]
        {
            let mut out = String::new();
            columns.write(&mut out, width);
            assert_eq!(out.lines().last(), Some(expected), "{width}");
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(columns("日本"), 4);
        assert_eq!(cut("日本語日本語", 8), "日本...");
    }
}
