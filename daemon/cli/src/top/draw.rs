//! Drawing of the view.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table as TableWidget, TableState, Wrap};

use crate::top::rates::Counts;
use crate::top::rows::{COLUMNS, Item, RATE, Row, rate_text};
use crate::top::view::{Focus, Table, View};

/// The widths of the columns behind the name.
const WIDTHS: [u16; COLUMNS - 1] = [9, 9, 11, 11, 11];

/// The styles of a terminal with 16 colours, or of one without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    has_colours: bool,
}

impl Theme {
    pub(super) fn new(has_colours: bool) -> Self {
        Theme { has_colours }
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn warning(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, view: &View, theme: Theme) {
    let policies = view.policy_rows();
    let third = frame.area().height / 3;
    let policy_lines = u16::try_from(policies.len() + 1).unwrap_or(u16::MAX).clamp(2, third.max(2));
    let lengths = [
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(policy_lines),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [head, _, upper, _, lower, foot] = Layout::vertical(lengths).areas(frame.area());
    draw_head(frame, head, view, theme);
    if view.focus == Focus::Key {
        draw_key(frame, upper.union(lower), view, theme);
    } else {
        let is_focused = view.focus == Focus::Policies;
        draw_table(frame, upper, &view.policy_table, &policies, is_focused, view, theme);
        draw_keys(frame, lower, view, theme);
    }
    frame.render_widget(foot_line(view, theme), foot);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View, theme: Theme) {
    let overview = &view.overview;
    let store = format!("{} {}", overview.store.kind, overview.store.status.replace('_', " "));
    let title = format!("tollgate {}", overview.version);
    let title = Line::from(vec![
        Span::styled(title, Modifier::BOLD),
        Span::raw(format!("  {}  store: {store}", view.url)),
    ]);
    let state = match (&view.failure, view.is_paused) {
        (Some(_), _) => Span::styled("disconnected", theme.warning()),
        (None, true) => Span::styled("paused", theme.colour(Color::Yellow)),
        (None, false) => Span::styled("live", theme.colour(Color::Green)),
    };
    let [top, bottom] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let width = u16::try_from(state.width()).unwrap_or(u16::MAX);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(top);
    frame.render_widget(title, left);
    frame.render_widget(state, right);
    let second = match &view.failure {
        Some(error) => Line::styled(format!("{error}; retrying every second"), theme.warning()),
        None => Line::raw(totals(view)),
    };
    frame.render_widget(second, bottom);
}

/// The rates of all policies.
fn totals(view: &View) -> String {
    let rates = view.policy_rates.total();
    let rate = |value: fn(Counts<f64>) -> f64| rate_text(rates.map(value));
    format!(
        "allowed {}/s  denied {}/s  shadow-denied {}/s  degraded {}/s  errors {}/s",
        rate(|rates| rates.allowed),
        rate(|rates| rates.denied),
        rate(|rates| rates.shadow_denied),
        rate(|rates| rates.degraded),
        rate(|rates| rates.errors)
    )
}

fn draw_table<T: Item>(
    frame: &mut Frame<'_>,
    area: Rect,
    table: &Table,
    rows: &[Row<'_, T>],
    is_focused: bool,
    view: &View,
    theme: Theme,
) {
    let header = T::HEADERS.iter().enumerate().map(|(column, name)| {
        let name = if column == table.column { format!("{name}▼") } else { (*name).to_owned() };
        let style = if column == table.column { Modifier::BOLD } else { Modifier::empty() };
        cell(column, name, Style::new().add_modifier(style))
    });
    let header = TableRow::new(header).style(theme.colour(Color::Cyan));
    let body = rows.iter().map(|row| {
        let is_denied = row.rates.is_some_and(|rates| rates.denied > 0.0);
        let cells = row.cells(view.overview.time).into_iter().enumerate();
        TableRow::new(cells.map(|(column, text)| {
            let is_marked = is_denied && column == RATE + 1;
            cell(column, text, if is_marked { theme.colour(Color::Red) } else { Style::new() })
        }))
    });
    let widths = [Constraint::Fill(1)].into_iter().chain(WIDTHS.map(Constraint::Length));
    let selected = if is_focused { Modifier::REVERSED } else { Modifier::BOLD };
    let widget = TableWidget::new(body, widths).header(header).row_highlight_style(selected);
    let mut state = TableState::default().with_selected(table.position(rows));
    frame.render_stateful_widget(widget, area, &mut state);
}

/// A cell of a column: names to the left, numbers to the right.
fn cell(column: usize, text: String, style: Style) -> Cell<'static> {
    let line = Line::styled(text, style);
    Cell::new(if column == 0 { line } else { line.right_aligned() })
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &View, theme: Theme) {
    let [title, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let filter = match view.key_table.filter.as_str() {
        "" => String::new(),
        prefix => format!(", beginning with {}", prefix.escape_debug()),
    };
    let text = format!("keys of {}{filter}", view.policy());
    frame.render_widget(Line::styled(text, Modifier::BOLD), title);
    if let Err(error) = &view.keys {
        frame.render_widget(Paragraph::new(error.as_str()).wrap(Wrap { trim: true }), body);
        return;
    }
    let is_focused = view.focus == Focus::Keys;
    draw_table(frame, body, &view.key_table, &view.key_rows(), is_focused, view, theme);
}

fn draw_key(frame: &mut Frame<'_>, area: Rect, view: &View, theme: Theme) {
    let [title, rates, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1)])
            .areas(area);
    let name = view.open_key().map(|key| key.key.escape_debug().to_string());
    let text =
        format!("{}  {}", name.unwrap_or_else(|| "no longer listed".to_owned()), view.policy());
    frame.render_widget(Line::styled(text, Modifier::BOLD), title);
    let selected = view.key_table.selected.as_deref().unwrap_or_default();
    let (allowed, denied) = match view.key_rates.rates(selected) {
        Some(rates) => (Some(rates.allowed), Some(rates.denied)),
        None => (None, None),
    };
    let text = format!("allowed {}/s  denied {}/s", rate_text(allowed), rate_text(denied));
    frame.render_widget(Line::raw(text), rates);
    let text = match &view.key {
        Ok(lines) => lines.iter().map(|line| Line::raw(line.as_str())).collect(),
        Err(error) => vec![Line::styled(error.as_str(), theme.warning())],
    };
    frame.render_widget(Paragraph::new(text).scroll((view.scroll, 0)), body);
}

fn foot_line(view: &View, theme: Theme) -> Line<'static> {
    if let Some(hint) = view.hint {
        return Line::styled(hint, theme.colour(Color::Yellow));
    }
    let help = match view.focus {
        _ if view.is_typing => {
            let (name, table) = match view.focus {
                Focus::Policies => ("policies with", &view.policy_table),
                Focus::Keys | Focus::Key => ("keys beginning with", &view.key_table),
            };
            let filter = table.filter.escape_debug();
            return Line::raw(format!("{name}: {filter}_  (Enter keeps it, Esc removes it)"));
        }
        Focus::Policies => {
            "↑↓ policy  Enter its keys  s or 1-6 sort  / filter  Space pause  q quit"
        }
        Focus::Keys => {
            "↑↓ key  Enter its page  Esc back  s or 1-6 sort  / filter  Space pause  q quit"
        }
        Focus::Key => "↑↓ scroll  Esc back  Space pause  q quit",
    };
    Line::styled(help, theme.colour(Color::Cyan))
}
