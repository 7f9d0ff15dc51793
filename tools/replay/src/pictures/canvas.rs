//! The SVG canvas. Its unit is half a pixel, which allows thin lines.

use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{Color, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, TextStyle};

use super::palette::{self, PaletteColor};
use super::text_metrics;
use crate::report::format::escape;

/// A position in half pixels, from the upper left corner.
pub(super) type Point = (i32, i32);

/// The width of every picture in half pixels.
pub(super) const WIDTH: i32 = 1600;

/// The accessible description of a picture.
#[derive(Debug)]
pub(super) struct About {
    /// Distinguishes the pictures of a page.
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) description: String,
}

/// The style of a text.
#[derive(Clone, Copy, Debug)]
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

    /// The maximum width of a text; the fonts of the reader are unknown.
    pub(super) fn width(self, text: &str) -> i32 {
        text_metrics::width(text, self.size, self.is_bold)
    }

    /// The beginning of a text that fits, followed by `…`.
    pub(super) fn shorten(self, text: &str, room: i32) -> String {
        text_metrics::shorten(text, room, |text| self.width(text))
    }
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
        palette::style(),
        palette::hatching(id),
    );
    head + &palette::replace_placeholders(body, id)
}
