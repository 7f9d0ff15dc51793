//! What pictures are drawn on: an SVG whose units are half pixels, so that thin things can be thin.

use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{Color, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, TextStyle};

use super::ink::{self, Ink};
use super::lettering;

/// A place in half pixels, from the upper left corner.
pub(super) type Point = (i32, i32);

/// The width of every picture in half pixels.
pub(super) const WIDTH: i32 = 1600;

/// What a picture is, for who cannot see it.
#[derive(Debug)]
pub(super) struct About {
    /// A word that tells the picture from the others in one page.
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) description: String,
}

/// How letters are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    pub(super) ink: Ink,
    /// The height of the letters in half pixels.
    pub(super) size: i32,
    pub(super) is_bold: bool,
}

impl Face {
    pub(super) const HEADLINE: Face = Face { ink: Ink::Text, size: 40, is_bold: true };
    pub(super) const TITLE: Face = Face { ink: Ink::Text, size: 34, is_bold: true };
    pub(super) const FIGURES: Face = Face { ink: Ink::Text, size: 32, is_bold: false };
    pub(super) const LABEL: Face = Face { ink: Ink::Muted, size: 29, is_bold: false };

    /// How wide a text becomes, at most: no font is at hand to ask.
    pub(super) fn width(self, text: &str) -> i32 {
        lettering::width(text, self.size, self.is_bold)
    }

    /// As much of a text as fits, with `…` for the rest.
    pub(super) fn shorten(self, text: &str, room: i32) -> String {
        lettering::shorten(text, room, |text| self.width(text))
    }
}

/// A picture that is being drawn. Drawing into a string does not fail.
pub(super) struct Canvas<'a>(DrawingArea<SVGBackend<'a>, plotters::coord::Shift>);

/// Draws a picture of so many half pixels.
pub(super) fn draw(about: &About, height: i32, paint: impl FnOnce(&Canvas<'_>)) -> String {
    let mut svg = String::new();
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    let canvas = Canvas(SVGBackend::with_string(&mut svg, size).into_drawing_area());
    canvas.rectangle((0, 0), (WIDTH, height), Ink::Ground);
    paint(&canvas);
    let _ = canvas.0.present();
    drop(canvas);
    finish(&svg, about, height)
}

impl Canvas<'_> {
    pub(super) fn line(&self, from: Point, to: Point, ink: Ink, width: u32) {
        self.path(vec![from, to], ink, width);
    }

    pub(super) fn path(&self, points: Vec<Point>, ink: Ink, width: u32) {
        let style = ink.sentinel().stroke_width(width);
        let _ = self.0.draw(&PathElement::new(points, style));
    }

    pub(super) fn polygon(&self, points: Vec<Point>, ink: Ink) {
        let _ = self.0.draw(&Polygon::new(points, ink.sentinel().filled()));
    }

    pub(super) fn rectangle(&self, from: Point, to: Point, ink: Ink) {
        let _ = self.0.draw(&Rectangle::new([from, to], ink.sentinel().filled()));
    }

    /// Writes a text whose middle line is at the point.
    pub(super) fn text(&self, at: Point, text: &str, face: Face, anchor: HPos) {
        // The backend divides by that, and the quotient shall be whole.
        const BACKEND_SCALE: f64 = 1.24;
        #[expect(clippy::float_arithmetic, reason = "the drawing library takes floats")]
        let size = f64::from(face.size) * BACKEND_SCALE;
        let colour = face.ink.sentinel();
        let weight = if face.is_bold { FontStyle::Bold } else { FontStyle::Normal };
        let style = TextStyle::from((FontFamily::SansSerif, size, weight))
            .color(&colour)
            .pos(Pos::new(anchor, VPos::Center));
        let _ = self.0.draw(&Text::new(text, at, style));
    }
}

fn finish(svg: &str, about: &About, height: i32) -> String {
    let About { id, title, description } = about;
    // The drawing library's own head has no room for what a reader aloud needs.
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let body = body.replace(" opacity=\"1\"", "").replace(" stroke=\"none\"", "");
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n{}{}",
        WIDTH / 2,
        height / 2,
        lettering::escape(title),
        lettering::escape(description),
        ink::style(),
        ink::hatching(id),
    );
    head + &ink::replace_sentinels(body, id)
}
