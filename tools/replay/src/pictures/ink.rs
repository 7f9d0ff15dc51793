//! Colours. A shape is drawn in a colour that stands for what it means, and that is replaced in
//! the finished picture by the colour of each scheme.
//!
//! The palette is Okabe and Ito's, which is told apart by the colour-blind; what is denied is
//! hatched besides, and what is admitted is solid.

use plotters::style::RGBColor;

/// What a shape means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// What everything stands on.
    Ground,
    /// Titles.
    Text,
    /// Labels, and what explains.
    Muted,
    /// The lines of the axes.
    Grid,
    /// Where a window begins.
    Edge,
    /// What was admitted.
    Admitted,
    /// Below a line of what was admitted.
    Faint,
    /// What was denied, as an area.
    Denied,
    /// What was denied, as a line or a narrow bar.
    DeniedLine,
    /// The outline of what was offered.
    Offered,
    /// A limit.
    Bound,
    /// What is over a limit.
    Over,
    /// Keys, whatever was done with what they asked.
    Keys,
}

impl Ink {
    pub(super) const ALL: [Ink; 13] = [
        Ink::Ground,
        Ink::Text,
        Ink::Muted,
        Ink::Grid,
        Ink::Edge,
        Ink::Admitted,
        Ink::Faint,
        Ink::Denied,
        Ink::DeniedLine,
        Ink::Offered,
        Ink::Bound,
        Ink::Over,
        Ink::Keys,
    ];

    /// Its name in the style sheet, its colour on light and on dark.
    const fn scheme(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Ink::Ground => ("ground", "#ffffff", "#11161d"),
            Ink::Text => ("text", "#1b1f24", "#e6edf3"),
            Ink::Muted => ("muted", "#525b66", "#a3b0bd"),
            Ink::Grid => ("grid", "#e2e6ea", "#2a323b"),
            Ink::Edge => ("edge", "#8f99a3", "#66717d"),
            Ink::Admitted => ("admitted", "#0072b2", "#56b4e9"),
            Ink::Faint => ("faint", "#cfe3f1", "#1d3a50"),
            Ink::Denied => ("denied", "#fbe3d3", "#46290f"),
            Ink::DeniedLine => ("denied-line", "#d55e00", "#f0872e"),
            Ink::Offered => ("offered", "#1b1f24", "#e6edf3"),
            Ink::Bound => ("bound", "#1b1f24", "#e6edf3"),
            Ink::Over => ("over", "#cc79a7", "#cc79a7"),
            Ink::Keys => ("keys", "#7f93a6", "#7f93a6"),
        }
    }

    /// The colour that stands for it while the picture is drawn.
    pub(super) fn sentinel(self) -> RGBColor {
        let at = Ink::ALL.iter().position(|x| *x == self).unwrap_or_default();
        RGBColor(1, 254, u8::try_from(at).unwrap_or_default())
    }
}

/// Puts the colours of both schemes in place of those that stand for them: the light one is each
/// shape's own, so that a reader without style sheets shows it; a class turns it dark.
pub(super) fn replace_sentinels(mut svg: String, id: &str) -> String {
    for ink in Ink::ALL {
        let RGBColor(r, g, b) = ink.sentinel();
        let (name, light, _) = ink.scheme();
        let fill = match ink {
            // The pattern brings the colours of both schemes.
            Ink::Denied => format!("fill=\"url(#{id}-hatch)\""),
            _ => format!("fill=\"{light}\" class=\"fill-{name}\""),
        };
        let dashes = match ink {
            Ink::Bound => " stroke-dasharray=\"14 8\"",
            Ink::Edge => " stroke-dasharray=\"4 8\"",
            _ => "",
        };
        let line = format!("stroke=\"{light}\" class=\"line-{name}\"{dashes}");
        svg = svg.replace(&format!("fill=\"#{r:02X}{g:02X}{b:02X}\""), &fill);
        svg = svg.replace(&format!("stroke=\"#{r:02X}{g:02X}{b:02X}\""), &line);
    }
    svg
}

/// The style sheet that turns a picture dark. Paper is never dark.
pub(super) fn style() -> String {
    let mut rules = String::new();
    for ink in Ink::ALL {
        let (name, _, dark) = ink.scheme();
        rules.push_str(&format!(".fill-{name}{{fill:{dark}}}.line-{name}{{stroke:{dark}}}"));
    }
    format!("<style>@media screen and (prefers-color-scheme:dark){{{rules}}}</style>")
}

/// The hatching of what was denied.
pub(super) fn hatching(id: &str) -> String {
    let (tint, ground, _) = Ink::Denied.scheme();
    let (line, stripe, _) = Ink::DeniedLine.scheme();
    format!(
        "<defs><pattern id=\"{id}-hatch\" width=\"12\" height=\"12\" \
         patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect width=\"12\" height=\"12\" fill=\"{ground}\" class=\"fill-{tint}\"/>\
         <rect width=\"4\" height=\"12\" fill=\"{stripe}\" class=\"fill-{line}\"/>\
         </pattern></defs>"
    )
}
