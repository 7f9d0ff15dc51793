//! Text in columns that fit a terminal.

/// The width to which a text may be cut before a column is omitted.
const MIN_WIDTH: usize = 16;
const GAP: &str = "  ";

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A text, which is cut if there is not enough space.
    Left,
    /// A number, which is never cut.
    Right,
    /// A redundant column, which is omitted before any text is cut.
    Spare,
}

/// Columns in the order of importance: if there is not enough space, the last ones are omitted.
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

    /// Writes the rows, each indented by a gap.
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

    /// The widths of the columns that fit.
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
            let texts =
                texts.filter(|(_, (width, (_, side)))| *side == Side::Left && **width > MIN_WIDTH);
            let longest = texts.max_by_key(|(_, (width, _))| **width).map(|(at, _)| at);
            let last = widths.len().checked_sub(1).and_then(|last| self.heads.get(last));
            let longest = longest.filter(|_| last.is_none_or(|(_, side)| *side != Side::Spare));
            match longest {
                Some(longest) => {
                    let cut = widths.get_mut(longest).into_iter();
                    cut.for_each(|cut| *cut = cut.saturating_sub(excess).max(MIN_WIDTH));
                }
                // The space of an omitted column goes to the texts.
                None if widths.len() > 1 => {
                    widths = natural[..widths.len() - 1].to_vec();
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

/// The beginning of a text that fits, followed by `...`.
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

/// The number of terminal columns of a text.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// East Asian letters and emoji take two columns.
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
    fn texts_are_cut_before_columns_are_omitted() {
        let mut table =
            Columns::new(&[("key", Side::Left), ("asked", Side::Right), ("of", Side::Right)]);
        table.row(vec!["a key of some length".to_owned(), "12,345".to_owned(), "7 %".to_owned()]);
        for (width, expected) in [
            (80, ["key asked of", "a key of some length 12,345 7 %"]),
            (33, ["key asked of", "a key of some l... 12,345 7 %"]),
            (30, ["key asked", "a key of some length 12,345"]),
            (26, ["key asked", "a key of some... 12,345"]),
            (10, ["key", "a key of some..."]),
        ] {
            let mut out = String::new();
            table.write(&mut out, width);
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let lines: Vec<_> = out.lines().map(words).collect();
            assert_eq!(lines, expected, "{width}");
            let widest = out.lines().map(columns).max();
            assert!(widest <= Some(width.max(18)), "{width}\n{out}");
        }
    }

    #[test]
    fn a_redundant_column_is_omitted_before_a_text_is_cut() {
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
