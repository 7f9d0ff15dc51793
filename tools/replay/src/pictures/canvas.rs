//! The SVG canvas, its colours and the width of its texts. The unit is half a pixel, which allows
//! thin lines.
//!
//! A shape is drawn in a placeholder colour for its meaning, which is replaced in the finished
//! picture by the colours of both colour schemes. The palette is that of Okabe and Ito, which
//! colour-blind readers can distinguish. Denied areas are also hatched.

use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{Color, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, RGBColor, TextStyle};

use crate::report::format::escape;

/// A position in half pixels, from the upper left corner.
pub(super) type Point = (i32, i32);

/// The width of every picture in half pixels.
pub(super) const WIDTH: i32 = 1600;

/// The accessible description of a picture.
pub(super) struct About {
    /// Distinguishes the pictures of a page.
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) description: String,
}

#[derive(Clone, Copy)]
pub(super) struct Face {
    pub(super) color: PaletteColor,
    /// The height of the letters in half pixels.
    pub(super) size: i32,
    pub(super) is_bold: bool,
}

impl Face {
    pub(super) const HEADLINE: Face = Face { color: PaletteColor::Text, size: 40, is_bold: true };
    pub(super) const TITLE: Face = Face { color: PaletteColor::Text, size: 34, is_bold: true };
    pub(super) const FIGURES: Face = Face { color: PaletteColor::Text, size: 32, is_bold: false };
    pub(super) const LABEL: Face = Face { color: PaletteColor::Muted, size: 29, is_bold: false };

    /// The maximum width of a text. The generic font family differs between readers, so the widest
    /// of the usual fonts is assumed.
    pub(super) fn width(self, text: &str) -> i32 {
        let thousandths: i64 = text.chars().map(|letter| thousandths(letter, self.is_bold)).sum();
        i32::try_from(thousandths * i64::from(self.size) / 1_000).unwrap_or(i32::MAX)
    }

    /// The beginning of a text that fits, followed by `…`.
    pub(super) fn shorten(self, text: &str, room: i32) -> String {
        shorten(text, room, |text| self.width(text))
    }
}

/// The width of a letter in thousandths of its height.
fn thousandths(letter: char, is_bold: bool) -> i64 {
    let width = match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 330,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '\\' | '-' => 400,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 980,
        'A'..='Z' => 720,
        ' '..='~' => 610,
        '\u{1100}'.. => 1_050,
        _ => 680,
    };
    if is_bold { width * 11 / 10 } else { width }
}

/// The beginning of a text that fits, followed by `…`.
fn shorten(text: &str, room: i32, width: impl Fn(&str) -> i32) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut shortened = String::new();
    let room = room.saturating_sub(width("…"));
    for letter in text.chars() {
        shortened.push(letter);
        if width(&shortened) > room {
            shortened.pop();
            break;
        }
    }
    shortened.push('…');
    shortened
}

/// A picture in progress. Drawing into a string does not fail.
pub(super) struct Canvas<'a>(DrawingArea<SVGBackend<'a>, plotters::coord::Shift>);

/// Draws a picture of the given height in half pixels.
pub(super) fn draw(about: &About, height: i32, paint: impl FnOnce(&Canvas<'_>)) -> String {
    let mut svg = String::new();
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    let canvas = Canvas(SVGBackend::with_string(&mut svg, size).into_drawing_area());
    canvas.rectangle((0, 0), (WIDTH, height), PaletteColor::Ground);
    paint(&canvas);
    let _ = canvas.0.present();
    drop(canvas);
    finish(&svg, about, height)
}

impl Canvas<'_> {
    pub(super) fn line(&self, from: Point, to: Point, color: PaletteColor, width: u32) {
        self.path(vec![from, to], color, width);
    }

    pub(super) fn path(&self, points: Vec<Point>, color: PaletteColor, width: u32) {
        let style = color.placeholder().stroke_width(width);
        let _ = self.0.draw(&PathElement::new(points, style));
    }

    pub(super) fn polygon(&self, points: Vec<Point>, color: PaletteColor) {
        let _ = self.0.draw(&Polygon::new(points, color.placeholder().filled()));
    }

    pub(super) fn rectangle(&self, from: Point, to: Point, color: PaletteColor) {
        let _ = self.0.draw(&Rectangle::new([from, to], color.placeholder().filled()));
    }

    /// Writes a text, vertically centred at the point.
    pub(super) fn text(&self, at: Point, text: &str, face: Face, anchor: HPos) {
        // The backend divides the size by this, and the quotient should be whole.
        const BACKEND_SCALE: f64 = 1.24;
        #[expect(clippy::float_arithmetic, reason = "the drawing library takes floats")]
        let size = f64::from(face.size) * BACKEND_SCALE;
        let color = face.color.placeholder();
        let weight = if face.is_bold { FontStyle::Bold } else { FontStyle::Normal };
        let style = TextStyle::from((FontFamily::SansSerif, size, weight))
            .color(&color)
            .pos(Pos::new(anchor, VPos::Center));
        let _ = self.0.draw(&Text::new(text, at, style));
    }
}

fn finish(svg: &str, about: &About, height: i32) -> String {
    let About { id, title, description } = about;
    // The head of the drawing library lacks the accessible description.
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let body = body.replace(" opacity=\"1\"", "").replace(" stroke=\"none\"", "");
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n{}{}",
        WIDTH / 2,
        height / 2,
        escape(title),
        escape(description),
        style(),
        hatching(id),
    );
    head + &replace_placeholders(body, id)
}

/// The meaning of a shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PaletteColor {
    Ground,
    /// Titles.
    Text,
    /// Labels and explanations.
    Muted,
    /// The lines of the axes.
    Grid,
    /// The start of a window.
    Edge,
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
    Keys,
}

/// Each colour with its name in the style sheet, the light and the dark colour.
const SCHEMES: [(PaletteColor, &str, &str, &str); 13] = [
    (PaletteColor::Ground, "ground", "#ffffff", "#11161d"),
    (PaletteColor::Text, "text", "#1b1f24", "#e6edf3"),
    (PaletteColor::Muted, "muted", "#525b66", "#a3b0bd"),
    (PaletteColor::Grid, "grid", "#e2e6ea", "#2a323b"),
    (PaletteColor::Edge, "edge", "#8f99a3", "#66717d"),
    (PaletteColor::Admitted, "admitted", "#0072b2", "#56b4e9"),
    (PaletteColor::Faint, "faint", "#cfe3f1", "#1d3a50"),
    (PaletteColor::Denied, "denied", "#fbe3d3", "#46290f"),
    (PaletteColor::DeniedLine, "denied-line", "#d55e00", "#f0872e"),
    (PaletteColor::Offered, "offered", "#1b1f24", "#e6edf3"),
    (PaletteColor::Bound, "bound", "#1b1f24", "#e6edf3"),
    (PaletteColor::Over, "over", "#cc79a7", "#cc79a7"),
    (PaletteColor::Keys, "keys", "#7f93a6", "#7f93a6"),
];

impl PaletteColor {
    /// The position in `SCHEMES`, and the row there.
    #[expect(clippy::expect_used, reason = "`SCHEMES` lists every colour")]
    fn scheme(self) -> (u8, (PaletteColor, &'static str, &'static str, &'static str)) {
        (0..).zip(SCHEMES).find(|(_, row)| row.0 == self).expect("`SCHEMES` lists every colour")
    }

    /// The placeholder colour while the picture is drawn.
    fn placeholder(self) -> RGBColor {
        RGBColor(1, 254, self.scheme().0)
    }
}

/// Replaces the placeholders by the colours of both schemes: the light one is an attribute of the
/// shape, for readers without style sheets; a class makes it dark.
fn replace_placeholders(mut svg: String, id: &str) -> String {
    for (color, name, light, _) in SCHEMES {
        let RGBColor(r, g, b) = color.placeholder();
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
fn style() -> String {
    let mut rules = String::new();
    for (_, name, _, dark) in SCHEMES {
        rules.push_str(&format!(".fill-{name}{{fill:{dark}}}.line-{name}{{stroke:{dark}}}"));
    }
    format!("<style>@media screen and (prefers-color-scheme:dark){{{rules}}}</style>")
}

fn hatching(id: &str) -> String {
    let (_, (_, tint, ground, _)) = PaletteColor::Denied.scheme();
    let (_, (_, line, stripe, _)) = PaletteColor::DeniedLine.scheme();
    format!(
        "<defs><pattern id=\"{id}-hatch\" width=\"12\" height=\"12\" \
         patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect width=\"12\" height=\"12\" fill=\"{ground}\" class=\"fill-{tint}\"/>\
         <rect width=\"4\" height=\"12\" fill=\"{stripe}\" class=\"fill-{line}\"/>\
         </pattern></defs>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_the_available_width() {
        for (text, room, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 0, ""), ("abc", 0, "…"), ("äöü", 2, "ä…")]
        {
            let width = |text: &str| i32::try_from(text.chars().count()).unwrap();
            assert_eq!(shorten(text, room, width), expected, "{text}");
        }
    }
}
