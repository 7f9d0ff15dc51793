//! Accessible tables.

use crate::report::format::escape;

/// The content of a cell.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// A text.
    Text(String),
    /// A number with its unit, aligned to the right.
    Number(String),
    /// Text from a client or the user: a key, a limit, a line.
    Code(String),
}

/// A table whose first column names its rows.
#[derive(Clone, Debug)]
pub(super) struct Table {
    caption: String,
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(caption: impl Into<String>, heads: &[&'static str]) -> Self {
        Table { caption: caption.into(), heads: heads.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table in a region that can be scrolled with the keyboard; empty without rows.
    pub(super) fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let caption = escape(&self.caption);
        let first = self.rows.first();
        let heads = self.heads.iter().enumerate().map(|(at, head)| {
            let cell = first.and_then(|row| row.get(at));
            let class =
                if matches!(cell, Some(Cell::Number(_))) { " class=\"number\"" } else { "" };
            format!("<th scope=\"col\"{class}>{}</th>", escape(head))
        });
        let heads: String = heads.collect();
        let rows: String = self.rows.iter().map(|row| html_of_row(row)).collect();
        format!(
            "<div class=\"scroll\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\">\n\
             <table>\n<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n\
             <tbody>\n{rows}</tbody>\n</table>\n</div>\n"
        )
    }
}

fn html_of_row(row: &[Cell]) -> String {
    let cells: String =
        row.iter().enumerate().map(|(at, cell)| html_of_cell(cell, at == 0)).collect();
    format!("<tr>{cells}</tr>\n")
}

fn html_of_cell(cell: &Cell, names_row: bool) -> String {
    let class = match cell {
        Cell::Text(_) => "",
        Cell::Number(_) => " class=\"number\"",
        Cell::Code(_) => " class=\"code\"",
    };
    let content = match cell {
        Cell::Text(text) | Cell::Number(text) => escape(text),
        Cell::Code(text) => code(text),
    };
    if names_row {
        format!("<th scope=\"row\"{class}>{content}</th>")
    } else {
        format!("<td{class}>{content}</td>")
    }
}

/// Text from a client or the user, isolated from the direction of the surrounding text.
pub(super) fn code(text: &str) -> String {
    format!("<bdi><code>{}</code></bdi>", escape(text))
}
