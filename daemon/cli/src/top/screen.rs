//! The loop of the view: keys of the keyboard, readings and signals.

use std::io;
use std::thread;

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::client::Client;
use crate::output;
use crate::top::draw::{Theme, draw};
use crate::top::reading::read_repeatedly;
use crate::top::view::View;

/// The terminal, which is restored on drop; ratatui restores it before a panic is reported.
struct Screen(DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the view until it is quit or a signal ends it.
pub(super) async fn show(mut view: View, client: Client) -> Result<()> {
    let theme = Theme::new(output::has_colours());
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (subjects, changes) = watch::channel(view.subject());
    let (sender, mut readings) = mpsc::channel(1);
    tokio::spawn(read_repeatedly(client, changes, sender));
    let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore());
    let mut screen = Screen(terminal.context("cannot use the terminal; add --once")?);
    let mut events = events();
    loop {
        screen.0.draw(|frame| draw(frame, &view, theme))?;
        tokio::select! {
            event = events.recv() => match event.context("the terminal was closed")?? {
                Event::Key(key) if !view.press(key) => return Ok(()),
                // Others, such as a new size, only need another drawing.
                _ => {}
            },
            reading = readings.recv() => view.apply(reading.context("no more readings")?),
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => return Ok(()),
        }
        subjects.send_if_modified(|subject| {
            let next = view.subject();
            let is_new = *subject != next;
            *subject = next;
            is_new
        });
    }
}

/// The events of the terminal. The thread that reads them ends with the process.
fn events() -> mpsc::Receiver<io::Result<Event>> {
    let (sender, receiver) = mpsc::channel(16);
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_failed = event.is_err();
            if sender.blocking_send(event).is_err() || is_failed {
                return;
            }
        }
    });
    receiver
}
