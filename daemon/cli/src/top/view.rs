//! The state of the view, and what keys of the keyboard change.

use std::cmp::Reverse;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::top::rates::{Counter, Counts, Window};
use crate::top::reading::{Key, Overview, Policy, Reading, Subject};
use crate::top::rows::{COLUMNS, RATE, Row, rows};
use crate::usage::encoded;

/// The rows that Page Up and Page Down move by.
const PAGE: isize = 10;

/// The part that keys of the keyboard apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    Policies,
    Keys,
    /// The page of a key.
    Key,
}

/// The order, filter and selection of a table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) column: usize,
    pub(super) filter: String,
    /// The row; the first one if it is not listed.
    pub(super) selected: Option<String>,
}

impl Default for Table {
    fn default() -> Self {
        Table { column: RATE, filter: String::new(), selected: None }
    }
}

impl Table {
    /// The position of the selected row.
    pub(super) fn position<T>(&self, rows: &[Row<'_, T>]) -> Option<usize> {
        let position = rows.iter().position(|row| Some(&row.id) == self.selected.as_ref());
        position.or_else(|| (!rows.is_empty()).then_some(0))
    }

    fn moved<T>(&self, rows: &[Row<'_, T>], by: isize) -> Option<String> {
        let position = self.position(rows)?.saturating_add_signed(by).min(rows.len() - 1);
        Some(rows[position].id.clone())
    }
}

/// Everything that is drawn.
#[derive(Debug)]
pub(super) struct View {
    pub(super) url: String,
    pub(super) overview: Overview,
    pub(super) keys: Result<Vec<Key>, String>,
    /// The lines of the open page.
    pub(super) key: Result<Vec<String>, String>,
    pub(super) policy_rates: Window,
    pub(super) key_rates: Window,
    pub(super) policy_table: Table,
    pub(super) key_table: Table,
    pub(super) focus: Focus,
    /// Whether the filter is being typed.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    /// Why the daemon is not reachable.
    pub(super) failure: Option<String>,
    /// Why the last key of the keyboard had no effect.
    pub(super) hint: Option<&'static str>,
    /// The lines of the page of a key above the first one that is shown.
    pub(super) scroll: u16,
}

impl View {
    /// A view that lists the keys of this policy, or else of the busiest one with `track`, or else of
    /// the first one.
    pub(super) fn new(url: String, overview: Overview, policy: Option<String>) -> Self {
        let policies = || overview.policies.iter();
        let busiest = policies()
            .filter(|policy| policy.tracked)
            .min_by_key(|policy| Reverse(policy.totals.allowed.max(policy.totals.denied)))
            .or_else(|| policies().next());
        let policy = policy.or_else(|| busiest.map(|policy| policy.name.clone()));
        let mut view = View {
            url,
            overview,
            keys: Ok(Vec::new()),
            key: Ok(Vec::new()),
            policy_rates: Window::default(),
            key_rates: Window::default(),
            policy_table: Table { selected: policy, ..Table::default() },
            key_table: Table::default(),
            focus: Focus::Policies,
            is_typing: false,
            is_paused: false,
            failure: None,
            hint: None,
            scroll: 0,
        };
        view.add_policies();
        view
    }

    /// What the view needs to be read.
    pub(super) fn subject(&self) -> Subject {
        let key = self.open_key().map(|key| match &key.key_base64 {
            Some(base64) => format!("key_base64={}", encoded(base64)),
            None => format!("key={}", encoded(&key.key)),
        });
        Subject {
            is_paused: self.is_paused,
            policy: self.policy().to_owned(),
            prefix: self.key_table.filter.clone(),
            key,
        }
    }

    /// The policy whose keys are listed.
    pub(super) fn policy(&self) -> &str {
        self.policy_table.selected.as_deref().unwrap_or_default()
    }

    /// The key whose page is open.
    pub(super) fn open_key(&self) -> Option<&Key> {
        let id = self.key_table.selected.as_ref().filter(|_| self.focus == Focus::Key)?;
        self.keys.as_ref().ok()?.iter().find(|key| key.id() == *id)
    }

    /// Shows a reading, unless it was for what was shown before.
    pub(super) fn apply(&mut self, reading: Reading) {
        if reading.subject.is_paused != self.is_paused {
            return;
        }
        match reading.overview {
            Some(Err(error)) => return self.failure = Some(format!("{error:#}")),
            Some(Ok(overview)) => {
                #[expect(clippy::float_cmp, reason = "the same text gives the same number")]
                if overview.started != self.overview.started {
                    (self.policy_rates, self.key_rates) = (Window::default(), Window::default());
                }
                self.overview = overview;
                self.failure = None;
                self.add_policies();
            }
            None => {}
        }
        if reading.subject.policy != self.policy() {
            return;
        }
        if let Ok(keys) = &reading.keys {
            self.key_rates.add(self.overview.time, keys.iter().map(key_counter).collect());
        }
        self.keys = reading.keys.map_err(|error| format!("{error:#}"));
        if let Some(key) = reading.key {
            self.key = key.map_err(|error| format!("{error:#}"));
        }
    }

    fn add_policies(&mut self) {
        let Some(&time) = self.overview.history.time.last() else { return };
        // A policy that was not listed had no decisions.
        let counter = |policy: &Policy| {
            (policy.name.clone(), Counter { counts: policy.totals, first_seen: time })
        };
        self.policy_rates.add(time, self.overview.policies.iter().map(counter).collect());
    }

    pub(super) fn policy_rows(&self) -> Vec<Row<'_, Policy>> {
        let Table { column, filter, .. } = &self.policy_table;
        let policies = self.overview.policies.iter();
        rows(policies.filter(|policy| policy.name.contains(filter)), &self.policy_rates, *column)
    }

    pub(super) fn key_rows(&self) -> Vec<Row<'_, Key>> {
        let Table { column, filter, .. } = &self.key_table;
        let keys = self.keys.as_deref().unwrap_or_default().iter();
        rows(keys.filter(|key| key.key.starts_with(filter)), &self.key_rates, *column)
    }

    /// Handles a key of the keyboard. Returns whether the view continues.
    pub(super) fn press(&mut self, event: KeyEvent) -> bool {
        self.hint = None;
        let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            _ if event.kind == KeyEventKind::Release => {}
            KeyCode::Char('c') if is_control => return false,
            _ if self.is_typing => self.type_filter(event.code),
            KeyCode::Char('q') => return false,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = self.focus != Focus::Key,
            KeyCode::Char('s') => self.sort(None),
            KeyCode::Char(digit @ '1'..='6') => self.sort(digit.to_digit(10)),
            KeyCode::Tab | KeyCode::BackTab => self.switch(),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc => self.back(),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-PAGE),
            KeyCode::PageDown => self.select(PAGE),
            KeyCode::Home => self.select(isize::MIN),
            KeyCode::End => self.select(isize::MAX),
            _ => {}
        }
        true
    }

    /// The table that keys of the keyboard apply to.
    fn table(&mut self) -> &mut Table {
        match self.focus {
            Focus::Policies => &mut self.policy_table,
            Focus::Keys | Focus::Key => &mut self.key_table,
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        let table = self.table();
        match code {
            KeyCode::Char(c) => table.filter.push(c),
            KeyCode::Backspace => drop(table.filter.pop()),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                table.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
    }

    /// Orders by the column of this number, or by the next one.
    fn sort(&mut self, number: Option<u32>) {
        let table = self.table();
        let number = number.and_then(|number| usize::try_from(number).ok());
        table.column = number.map_or((table.column + 1) % COLUMNS, |number| number - 1);
    }

    fn switch(&mut self) {
        self.focus = match self.focus {
            Focus::Policies => Focus::Keys,
            Focus::Keys | Focus::Key => Focus::Policies,
        };
    }

    fn enter(&mut self) {
        match self.focus {
            Focus::Policies => self.focus = Focus::Keys,
            Focus::Keys if self.overview.privacy != "plain" => {
                self.hint = Some("the page of a key needs privacy: plain in the configuration");
            }
            Focus::Keys => {
                let rows = self.key_rows();
                if let Some(selected) = self.key_table.moved(&rows, 0) {
                    self.key_table.selected = Some(selected);
                    (self.focus, self.scroll, self.key) = (Focus::Key, 0, Ok(Vec::new()));
                }
            }
            Focus::Key => {}
        }
    }

    /// Closes the page of a key, or else removes the filter, or else returns to the policies.
    fn back(&mut self) {
        if self.focus == Focus::Key {
            self.focus = Focus::Keys;
        } else if self.table().filter.is_empty() {
            self.focus = Focus::Policies;
        } else {
            self.table().filter.clear();
        }
    }

    /// Moves the selection, or scrolls the page of a key.
    fn select(&mut self, by: isize) {
        match self.focus {
            Focus::Policies => {
                let selected = self.policy_table.moved(&self.policy_rows(), by);
                if selected.as_deref().is_some_and(|policy| policy != self.policy()) {
                    self.policy_table.selected = selected;
                    (self.keys, self.key_rates) = (Ok(Vec::new()), Window::default());
                    self.key_table = Table { column: self.key_table.column, ..Table::default() };
                }
            }
            Focus::Keys => self.key_table.selected = self.key_table.moved(&self.key_rows(), by),
            Focus::Key => {
                let lines = self.key.as_ref().map_or(0, Vec::len);
                let scroll = usize::from(self.scroll).saturating_add_signed(by);
                let last = lines.saturating_sub(1);
                self.scroll = u16::try_from(scroll.min(last)).unwrap_or(u16::MAX);
            }
        }
    }
}

pub(super) fn key_counter(key: &Key) -> (String, Counter) {
    let (allowed, denied) = (key.usage.allowed, key.usage.denied);
    let counts = Counts { allowed, denied, ..Counts::default() };
    (key.id(), Counter { counts, first_seen: key.usage.first_seen })
}
