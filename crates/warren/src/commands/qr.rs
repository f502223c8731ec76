//! QR codes on a terminal.

use qrcode::{Color, EcLevel, QrCode};

/// The margin of a code in modules: half of the standard's. Readers accept it, and a
/// terminal is small.
const MARGIN: usize = 2;

/// A QR code in half blocks with its margin, light on dark as most terminals are. `None` for text that is
/// too long.
pub(super) fn code(text: &str) -> Option<String> {
    Some(drawn(&QrCode::with_error_correction_level(text, EcLevel::L).ok()?, MARGIN))
}

/// A QR code of at most `rows` rows, with as wide a margin as fits. `None` if it does not fit.
pub(super) fn code_within(text: &str, rows: usize) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let fits = |margin: &usize| (code.width() + 2 * margin).div_ceil(2) <= rows;
    let margin = [MARGIN, 1].into_iter().find(fits)?;
    Some(drawn(&code, margin))
}

/// Draws two modules above each other as one character.
fn drawn(code: &QrCode, margin: usize) -> String {
    let (modules, width) = (code.to_colors(), code.width());
    let is_light = |x: usize, y: usize| {
        let (x, y) = (x.wrapping_sub(margin), y.wrapping_sub(margin));
        x >= width || y >= width || modules[y * width + x] == Color::Light
    };
    let side = width + 2 * margin;
    let row = |y: usize| -> String {
        let block = |x: usize| match (is_light(x, y), y + 1 < side && is_light(x, y + 1)) {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        };
        (0..side).map(block).collect()
    };
    (0..side).step_by(2).map(row).collect::<Vec<_>>().join("\n")
}

/// The QR code of a text with lines to the right of it, from the top.
pub(super) fn beside(text: &str, lines: &[String]) -> Option<String> {
    let code = code(text)?;
    let rows = code.lines().zip(lines.iter().map(String::as_str).chain(std::iter::repeat("")));
    let rows: Vec<String> =
        rows.map(|(row, line)| format!("{row}  {line}").trim_end().to_owned()).collect();
    Some(rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_fits_on_a_terminal_of_80_by_24_with_its_text() {
        let drawn = code("http://192.168.100.100:9178/rooms/resourceful-hippopotamus-99").unwrap();
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 41 && drawn.lines().count() <= 19, "{drawn}");
        assert!(drawn.chars().all(|c| matches!(c, ' ' | '▀' | '▄' | '█' | '\n')), "{drawn}");
        assert!(code(&"x".repeat(4_000)).is_none());
    }

    #[test]
    fn a_code_is_drawn_module_by_module_within_a_light_margin() {
        let modules = QrCode::with_error_correction_level("warren", EcLevel::L).unwrap();
        let drawn = code("warren").unwrap();
        let rows: Vec<Vec<char>> = drawn.lines().map(|line| line.chars().collect()).collect();
        let is_light = |x: usize, y: usize| {
            let light = if y.is_multiple_of(2) { ['█', '▀'] } else { ['█', '▄'] };
            light.contains(&rows[y / 2][x])
        };
        let (colors, width) = (modules.to_colors(), modules.width());
        for (x, y) in (0..width).flat_map(|x| (0..width).map(move |y| (x, y))) {
            let expected = colors[y * width + x] == Color::Light;
            assert_eq!(is_light(x + MARGIN, y + MARGIN), expected, "{x} {y}");
        }
        let side = width + 2 * MARGIN;
        assert!((0..side).all(|at| is_light(at, 0) && is_light(0, at) && is_light(side - 1, at)));
    }

    #[test]
    fn a_code_that_does_not_fit_is_not_drawn() {
        // An invitation to a cluster: 37 modules.
        let text = "x".repeat(95);
        assert_eq!(code_within(&text, 21).unwrap().lines().count(), 21);
        assert_eq!(code_within(&text, 20).unwrap().lines().count(), 20);
        assert_eq!(code_within(&text, 19), None);
    }

    #[test]
    fn an_invitation_and_what_it_is_for_fit_beside_each_other() {
        let lines = ["x".repeat(36), "y".repeat(36)];
        let drawn = beside(&"W".repeat(114), &lines).unwrap();
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest < 80 && drawn.lines().count() <= 21, "{drawn}");
        assert!(drawn.contains(&lines[1]), "{drawn}");
    }
}
