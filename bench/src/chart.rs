//! Curves as pictures.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::report::Curve;

const SIZE: (u32, u32) = (760, 400);
/// Tollgate's line, and those of others.
const COLORS: [RGBColor; 3] = [RGBColor(0, 94, 162), RGBColor(200, 90, 0), RGBColor(90, 90, 90)];

/// The curve as SVG: CPU time per operation over a logarithmic axis.
///
/// # Errors
/// There are no points.
pub fn svg(curve: &Curve) -> Result<String> {
    let mut text = String::new();
    draw(curve, SVGBackend::with_string(&mut text, SIZE)).map_err(|error| anyhow!("{error}"))?;
    Ok(text)
}

fn draw(curve: &Curve, backend: SVGBackend<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let xs = || curve.points.iter().map(|(x, _)| *x);
    let (first, last) = (xs().min().ok_or("no points")?, xs().max().ok_or("no points")?);
    let series: Vec<(&str, Vec<(u64, u64)>)> = curve.series();
    let highest = series.iter().flat_map(|(_, points)| points).map(|(_, ns)| *ns).max();

    let area = backend.into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        // The last label is wider than the axis leaves room for.
        .margin_right(56)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d((first..last).log_scale(), 0..highest.unwrap_or(1) * 5 / 4)?;
    chart
        .configure_mesh()
        .x_desc(curve.unit)
        .y_desc("CPU per operation, ns")
        .x_label_formatter(&|x| grouped(*x))
        .y_label_formatter(&|y| grouped(*y))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for ((name, points), color) in series.into_iter().zip(COLORS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)).point_size(3))?
            .label(name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(TRANSPARENT)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Row, Sample};

    fn row(cpu_ns: u64) -> Row {
        let mut systems = [("tollgate".to_owned(), cpu_ns), ("governor".to_owned(), 2 * cpu_ns)];
        let sample = |cpu_ns: &mut u64| Ok(Sample { rate: 1, cpu_ps: *cpu_ns * 1_000 });
        Row::measure("work", 1, &mut systems, sample).unwrap()
    }

    #[test]
    fn a_picture_has_a_line_for_each_system() {
        let points = vec![(1_000, row(40)), (1_000_000, row(400))];
        let curve = Curve { name: "keys", title: "Keys", unit: "keys", points };
        let picture = svg(&curve).unwrap();
        for text in ["tollgate", "governor", "1,000,000", "keys", "CPU per operation, ns"] {
            assert!(picture.contains(text), "{text}: {picture}");
        }
        for color in ["#005EA2", "#C85A00"] {
            assert_eq!(picture.matches(color).count(), 2 + 2, "{color}: {picture}");
        }
        assert!(svg(&Curve { points: Vec::new(), ..curve }).is_err());
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([1, 999, 1_000, 12_345_678].map(grouped), ["1", "999", "1,000", "12,345,678"]);
    }
}
