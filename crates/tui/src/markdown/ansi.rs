//! Styled lines with escape sequences, for a terminal.

use ratatui::{
    style::{Color, Modifier, Style},
    text::Line,
};

/// A line with the escape sequences of its styles. No style goes on after it.
pub fn line(line: &Line<'_>) -> String {
    let mut all = String::new();
    for span in &line.spans {
        let codes = codes(line.style.patch(span.style));
        if codes.is_empty() {
            all.push_str(&span.content);
        } else {
            all.push_str(&format!("\u{1b}[{}m{}\u{1b}[0m", codes.join(";"), span.content));
        }
    }
    all
}

/// A text in dim letters, such as a model's thoughts.
pub fn dim(text: &str) -> String {
    format!("\u{1b}[2m{text}\u{1b}[0m")
}

/// The parameters of the sequence that begins a style.
fn codes(style: Style) -> Vec<String> {
    const MODIFIERS: [(Modifier, u8); 5] = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::CROSSED_OUT, 9),
    ];
    let modifiers = MODIFIERS.iter().filter(|(modifier, _)| style.add_modifier.contains(*modifier));
    let mut codes: Vec<String> = modifiers.map(|(_, code)| code.to_string()).collect();
    // The theme has no other colours.
    if let Some(Color::Indexed(tone)) = style.fg {
        codes.push(format!("38;5;{tone}"));
    }
    codes
}

#[cfg(test)]
mod tests {
    use ratatui::text::Span;

    use super::*;

    #[test]
    fn a_style_ends_with_its_text() {
        let style = Style::new().fg(Color::Indexed(32)).bold();
        let shown = line(&Line::from(vec![Span::raw("a "), Span::styled("b", style)]));
        assert_eq!(shown, "a \u{1b}[1;38;5;32mb\u{1b}[0m");
    }
}
