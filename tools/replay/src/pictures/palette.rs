//! Colours. A shape is drawn in a placeholder colour for its meaning, which is replaced in the finished
//! picture by the colours of both colour schemes.
//!
//! The palette is that of Okabe and Ito, which colour-blind readers can distinguish. Denied areas are also
//! hatched.

use plotters::style::RGBColor;

/// The meaning of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaletteColor {
    /// The background.
    Ground,
    /// Titles.
    Text,
    /// Labels and explanations.
    Muted,
    /// The lines of the axes.
    Grid,
    /// The start of a window.
    Edge,
    /// Admitted requests.
    Admitted,
    /// The area below the line of admitted requests.
    Faint,
    /// Denied requests, as an area.
    Denied,
    /// Denied requests, as a line or a narrow bar.
    DeniedLine,
    /// The outline of all requests.
    Offered,
    /// A limit.
    Bound,
    /// The part above a limit.
    Over,
    /// Keys.
    Keys,
}

impl PaletteColor {
    pub(super) const ALL: [PaletteColor; 13] = [
        PaletteColor::Ground,
        PaletteColor::Text,
        PaletteColor::Muted,
        PaletteColor::Grid,
        PaletteColor::Edge,
        PaletteColor::Admitted,
        PaletteColor::Faint,
        PaletteColor::Denied,
        PaletteColor::DeniedLine,
        PaletteColor::Offered,
        PaletteColor::Bound,
        PaletteColor::Over,
        PaletteColor::Keys,
    ];

    /// The name in the style sheet, the light and the dark colour.
    const fn scheme(self) -> (&'static str, &'static str, &'static str) {
        match self {
            PaletteColor::Ground => ("ground", "#ffffff", "#11161d"),
            PaletteColor::Text => ("text", "#1b1f24", "#e6edf3"),
            PaletteColor::Muted => ("muted", "#525b66", "#a3b0bd"),
            PaletteColor::Grid => ("grid", "#e2e6ea", "#2a323b"),
            PaletteColor::Edge => ("edge", "#8f99a3", "#66717d"),
            PaletteColor::Admitted => ("admitted", "#0072b2", "#56b4e9"),
            PaletteColor::Faint => ("faint", "#cfe3f1", "#1d3a50"),
            PaletteColor::Denied => ("denied", "#fbe3d3", "#46290f"),
            PaletteColor::DeniedLine => ("denied-line", "#d55e00", "#f0872e"),
            PaletteColor::Offered => ("offered", "#1b1f24", "#e6edf3"),
            PaletteColor::Bound => ("bound", "#1b1f24", "#e6edf3"),
            PaletteColor::Over => ("over", "#cc79a7", "#cc79a7"),
            PaletteColor::Keys => ("keys", "#7f93a6", "#7f93a6"),
        }
    }

    /// The placeholder colour while the picture is drawn.
    #[expect(clippy::expect_used, reason = "`ALL` lists fewer than 256 colours")]
    pub(super) fn placeholder(self) -> RGBColor {
        let index =
            Self::ALL.iter().position(|color| *color == self).expect("`ALL` lists every colour");
        RGBColor(1, 254, u8::try_from(index).expect("fewer than 256 colours"))
    }
}

/// Replaces the placeholders by the colours of both schemes: the light one is an attribute of the shape, for
/// readers without style sheets; a class makes it dark.
pub(super) fn replace_placeholders(mut svg: String, id: &str) -> String {
    for color in PaletteColor::ALL {
        let RGBColor(r, g, b) = color.placeholder();
        let (name, light, _) = color.scheme();
        let fill = match color {
            // The pattern contains the colours of both schemes.
            PaletteColor::Denied => format!("fill=\"url(#{id}-hatch)\""),
            _ => format!("fill=\"{light}\" class=\"fill-{name}\""),
        };
        let dashes = match color {
            PaletteColor::Bound => " stroke-dasharray=\"14 8\"",
            PaletteColor::Edge => " stroke-dasharray=\"4 8\"",
            _ => "",
        };
        let line = format!("stroke=\"{light}\" class=\"line-{name}\"{dashes}");
        svg = svg.replace(&format!("fill=\"#{r:02X}{g:02X}{b:02X}\""), &fill);
        svg = svg.replace(&format!("stroke=\"#{r:02X}{g:02X}{b:02X}\""), &line);
    }
    svg
}

/// The style sheet of the dark scheme, which does not apply to print.
pub(super) fn style() -> String {
    let mut rules = String::new();
    for color in PaletteColor::ALL {
        let (name, _, dark) = color.scheme();
        rules.push_str(&format!(".fill-{name}{{fill:{dark}}}.line-{name}{{stroke:{dark}}}"));
    }
    format!("<style>@media screen and (prefers-color-scheme:dark){{{rules}}}</style>")
}

/// The hatching of denied areas.
pub(super) fn hatching(id: &str) -> String {
    let (tint, ground, _) = PaletteColor::Denied.scheme();
    let (line, stripe, _) = PaletteColor::DeniedLine.scheme();
    format!(
        "<defs><pattern id=\"{id}-hatch\" width=\"12\" height=\"12\" \
         patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect width=\"12\" height=\"12\" fill=\"{ground}\" class=\"fill-{tint}\"/>\
         <rect width=\"4\" height=\"12\" fill=\"{stripe}\" class=\"fill-{line}\"/>\
         </pattern></defs>"
    )
}
