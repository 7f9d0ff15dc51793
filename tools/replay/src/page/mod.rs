//! A report as one page of HTML that needs nothing but itself: no network, no script.
//!
//! Keys, names and lines come from others. They are escaped wherever they stand, and the page's
//! own policy forbids scripts besides. It is well-formed XML too, by which tests read it.

mod sections;
mod table;

use self::table::code;
use crate::pictures::lettering::escape;
use crate::report::Report;
use crate::report::notices::notices;
use crate::report::shown::{counted, grouped, length, second, text};

const STYLE: &str = include_str!("style.css");
/// No script, no connection, nothing from elsewhere; styles stand in the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A report as a page.
#[must_use]
pub fn page(report: &Report) -> String {
    let names: Vec<_> = report.source.names.iter().map(|name| text(name)).collect();
    let title = match names.join(", ") {
        names if names.is_empty() => "Replay".to_owned(),
        names => format!("Replay of {names}"),
    };
    let sections: Vec<_> =
        sections::ALL.iter().filter_map(|x| Some((x, (x.html)(report)?))).collect();
    let links = sections
        .iter()
        .map(|(x, _)| format!("<li><a href=\"#{}\">{}</a></li>\n", x.id, escape(x.title)));
    let links: String = links.collect();
    let bodies = sections.iter().map(|(x, body)| {
        let (id, heading) = (x.id, escape(x.title));
        format!(
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{heading}</h2>\n{body}</section>\n"
        )
    });
    let bodies: String = bodies.collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <meta name=\"color-scheme\" content=\"light dark\" />\n\
         <meta name=\"referrer\" content=\"no-referrer\" />\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}\
         <nav aria-label=\"Sections\"><ul>\n{links}</ul></nav>\n<main>\n{bodies}</main>\n{}\
         </body>\n</html>\n",
        escape(POLICY),
        escape(&title),
        header(report, &title),
        footer(),
    )
}

/// What was replayed, by what, and what to know before trusting it.
fn header(report: &Report, title: &str) -> String {
    let offered = report.offered;
    let mut summary =
        format!("{} of {}", counted(offered.requests, "request"), counted(report.keys, "key"));
    if offered.cost != offered.requests {
        summary.push_str(&format!(", cost {} in all", grouped(offered.cost)));
    }
    if let Some((first, last)) = report.source.span {
        let span = length(last.duration_since(first));
        summary.push_str(&format!(", {} to {} UTC ({span})", second(first), second(last)));
    }
    let format = report.source.format;
    let format = format.map_or_else(String::new, |f| format!("; format {}", escape(f)));
    let command = report.source.command.as_deref().map_or_else(String::new, |command| {
        format!("<p class=\"command\">{}</p>\n", code(&text(command)))
    });
    let notices: String =
        notices(report).iter().map(|notice| format!("<li>{}</li>\n", escape(notice))).collect();
    let notices = if notices.is_empty() {
        notices
    } else {
        format!("<ul class=\"notices\" aria-label=\"Notices\">\n{notices}</ul>\n")
    };
    let (title, summary) = (escape(title), escape(&summary));
    format!("<header>\n<h1>{title}</h1>\n<p>{summary}{format}</p>\n{command}{notices}</header>\n")
}

fn footer() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("<footer>Made by tollgate replay {version}. All times are in UTC.</footer>\n")
}
