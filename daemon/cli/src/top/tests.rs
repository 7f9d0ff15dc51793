//! The drawing of the view on a terminal of 80 columns and 24 lines.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

use crate::top::draw::{Theme, draw};
use crate::top::reading::{Key, Overview, Reading};
use crate::top::view::View;

/// An overview at this second, with these allowed and denied requests of a policy.
fn overview(second: u64, allowed: u64, denied: u64) -> Overview {
    let totals = |allowed: u64, denied: u64| json!({ "allowed": allowed, "denied": denied, "shadow_denied": 0, "degraded": 0, "errors": 0 });
    let policy = |name: &str, tracked: bool, totals: Value| json!({ "name": name, "limits": ["10/s"], "tracked": tracked, "totals": totals });
    let json = json!({
        "version": "0.1.0", "time": second, "started": 7, "privacy": "plain",
        "store": { "kind": "redis", "status": "never_reached" },
        "policies": [policy("api", true, totals(allowed, denied)), policy("login", false, totals(3, 0))],
        "history": { "time": [second] },
    });
    serde_json::from_value(json).unwrap()
}

fn key(name: &str, allowed: u64, denied: u64) -> Key {
    let json = json!({
        "key": name, "first_seen": 50, "last_seen": 100, "allowed": allowed, "denied": denied, "cost": allowed,
    });
    serde_json::from_value(json).unwrap()
}

fn view() -> View {
    let mut view = View::new("http://127.0.0.1:9090".to_owned(), overview(100, 500, 20), None);
    apply(&mut view, overview(100, 500, 20), vec![key("user:1", 400, 20)]);
    let keys = vec![
        key("user:1", 5_400, 45),
        key("a key of more characters than its column \u{1b}[2J", 2, 0),
    ];
    apply(&mut view, overview(102, 5_500, 45), keys);
    view
}

fn apply(view: &mut View, overview: Overview, keys: Vec<Key>) {
    let subject = view.subject();
    view.apply(Reading { subject, overview: Some(Ok(overview)), keys: Ok(keys), key: None });
}

fn press(view: &mut View, codes: &[KeyCode]) {
    assert!(codes.iter().all(|code| view.press(KeyEvent::from(*code))));
}

fn drawn(view: &View, has_colours: bool) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, view, Theme::new(has_colours))).unwrap();
    terminal.backend().clone()
}

/// The lines of the screen without those that are empty.
fn lines(view: &View) -> String {
    let screen = drawn(view, true).to_string();
    let lines = screen.lines().map(|line| line.trim_matches('"').trim_end());
    lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

#[test]
fn policies_and_keys_are_ordered_by_rate() {
    const EXPECTED: &str = "\
tollgate 0.1.0  http://127.0.0.1:9090  store: redis never reached           live
allowed 2,500/s  denied 12.5/s  shadow-denied 0/s  degraded 0/s  errors 0/s
POLICY                     RATE/S▼  DENIED/S    SHADOW/S  DEGRADED/S      DENIED
api                          2,512      12.5           0           0          45
login                            0         0           0           0           0
keys of api
KEY                        RATE/S▼  DENIED/S     ALLOWED      DENIED        LAST
user:1                       2,512      12.5       5,400          45      2s ago
a key of more characters         -         -           2           0      2s ago
↑↓ policy  Enter its keys  s or 1-6 sort  / filter  Space pause  q quit
";
    assert_eq!(lines(&view()), EXPECTED);
}

#[test]
fn keys_of_the_keyboard_sort_and_filter_the_table_in_focus() {
    let mut view = view();
    press(&mut view, &[KeyCode::Enter, KeyCode::Char('1')]);
    let sorted = lines(&view);
    let position = |name| sorted.find(name).unwrap();
    assert!(position("a key of") < position("user:1"), "{sorted}");
    press(&mut view, &"/user:q".chars().map(KeyCode::Char).collect::<Vec<_>>());
    assert_eq!(view.subject().prefix, "user:q", "q is a character of the filter");
    assert!(lines(&view).contains("keys beginning with: user:q_"), "{}", lines(&view));
    press(&mut view, &[KeyCode::Backspace, KeyCode::Enter]);
    assert!(!lines(&view).contains("a key of"), "{}", lines(&view));
    press(&mut view, &[KeyCode::Esc, KeyCode::Esc, KeyCode::Down]);
    assert_eq!((view.subject().prefix.as_str(), view.policy()), ("", "login"));
    assert!(!view.press(KeyEvent::from(KeyCode::Char('q'))));
}

#[test]
fn an_error_about_keys_is_wrapped_in_place_of_the_table() {
    let mut view = view();
    let message = "policy \"api\" does not track usage, which the order most-denied needs; add usage: \
                   true to its track, or use newest or oldest";
    view.keys = Err(message.to_owned());
    let screen = lines(&view);
    assert!(screen.replace('\n', " ").contains(message), "{screen}");
    assert!(!screen.contains("LAST"), "{screen}");
}

#[test]
fn an_unreachable_daemon_is_reported_beside_the_last_numbers() {
    let mut view = view();
    let (subject, keys) = (view.subject(), Ok(Vec::new()));
    let overview = Some(Err(anyhow::anyhow!("Connection refused")));
    view.apply(Reading { subject, overview, keys, key: None });
    let screen = lines(&view);
    assert!(screen.contains("never reached   disconnected\n"), "{screen}");
    assert!(screen.contains("Connection refused; retrying every second\n"), "{screen}");
    assert!(screen.contains("user:1                       2,512"), "{screen}");
    apply(&mut view, overview_after_restart(), vec![]);
    assert!(lines(&view).contains("live\nallowed -/s"), "no difference to another process");
}

fn overview_after_restart() -> Overview {
    Overview { started: 103.0, ..overview(104, 0, 0) }
}

#[test]
fn without_colours_only_bold_and_reversed_text_is_used() {
    let buffer = drawn(&view(), false).buffer().clone();
    let styles = Modifier::BOLD | Modifier::REVERSED;
    for cell in buffer.content() {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
        assert!(styles.contains(cell.modifier), "{cell:?}");
    }
    let coloured = drawn(&view(), true).buffer().clone();
    let is_basic = |cell: &ratatui::buffer::Cell| {
        matches!(cell.fg, Color::Reset | Color::Red | Color::Green | Color::Yellow | Color::Cyan)
    };
    assert!(coloured.content().iter().all(is_basic), "terminals have 16 colours");
}
