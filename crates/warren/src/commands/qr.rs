//! QR codes on a terminal.

use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};

/// A QR code in half blocks with its quiet zone, light on dark as most terminals are. `None` for text that is
/// too long.
pub(super) fn code(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (dark, light) = (Dense1x2::Light, Dense1x2::Dark);
    Some(code.render::<Dense1x2>().dark_color(dark).light_color(light).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_fits_on_a_terminal_of_80_by_24() {
        let drawn = code("http://192.168.100.100:9178/rooms/resourceful-hippopotamus-99").unwrap();
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 45 && drawn.lines().count() <= 23, "{drawn}");
        assert!(drawn.chars().all(|c| matches!(c, ' ' | '▀' | '▄' | '█' | '\n')), "{drawn}");
        assert!(code(&"x".repeat(4_000)).is_none());
    }
}
