//! Synthetic traffic instead of a log.
//!
//! The same [`Traffic`] always generates the same requests, up to the last digits of logarithms on
//! different machines, in constant memory.

mod events;
mod traffic;

use std::io::{self, Write};

use tollgate::Timestamp;

pub use events::{Events, SyntheticRequest, address_of, key_of};
pub use traffic::{MAX_KEYS, Rate, Shape, Traffic, TrafficError};

const WRITE_BYTES: usize = 64 << 10;

/// The paths; a number is appended.
const PATHS: [&str; 8] = [
    "/",
    "/api/v1/items/",
    "/api/v1/orders/",
    "/api/v1/search?page=",
    "/login?try=",
    "/assets/app.js?v=",
    "/images/",
    "/products/view?id=",
];
const REFERERS: [&str; 4] = [
    "-",
    "https://www.example.com/",
    "https://www.example.com/products",
    "https://search.example.net/",
];
const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:146.0) Gecko/20100101 Firefox/146.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "curl/8.5.0",
];

/// Writes the traffic as a combined log, with one line of about 200 bytes per request. The address
/// is [`address_of`] the key. Returns the number of lines.
///
/// As in real access logs, times have a resolution of one second.
///
/// # Errors
/// Writing failed.
pub fn write_combined(traffic: &Traffic, mut to: impl Write) -> io::Result<u64> {
    let mut lines = LineWriter::default();
    for event in traffic.events() {
        lines.put(&event)?;
        if lines.text.len() >= WRITE_BYTES {
            to.write_all(&lines.text)?;
            lines.text.clear();
        }
    }
    to.write_all(&lines.text)?;
    to.flush()?;
    Ok(lines.count)
}

#[derive(Debug, Default)]
struct LineWriter {
    text: Vec<u8>,
    count: u64,
    /// The last second, and its formatted date.
    second: Option<u64>,
    date: String,
}

impl LineWriter {
    fn put(&mut self, event: &SyntheticRequest) -> io::Result<()> {
        self.set_date(event.at)?;
        // Deterministic, so that a key always has the same client.
        let mixed = (self.count ^ u64::from(event.key)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let client = u64::from(event.key).wrapping_mul(0x9E37_79B9) >> 20;
        let (path, referer) = (pick(&PATHS, mixed), pick(&REFERERS, mixed >> 3));
        let agent = pick(&AGENTS, client);
        let (number, size) = (mixed >> 4, 200 + (mixed & 0x3FFF));
        writeln!(
            self.text,
            r#"{} - - [{}] "GET {path}{number} HTTP/1.1" 200 {size} "{referer}" "{agent}""#,
            address_of(event.key),
            self.date,
        )?;
        self.count += 1;
        Ok(())
    }

    fn set_date(&mut self, at: Timestamp) -> io::Result<()> {
        let second = at.as_micros() / 1_000_000;
        if self.second != Some(second) {
            let at = i64::try_from(second).map_err(io::Error::other)?;
            let at = jiff::Timestamp::from_second(at).map_err(io::Error::other)?;
            self.date = at.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
            self.second = Some(second);
        }
        Ok(())
    }
}

fn pick<'a>(texts: &[&'a str], number: u64) -> &'a str {
    let place = usize::try_from(number).unwrap_or(usize::MAX) % texts.len();
    texts[place]
}
