//! Questions to the user, drawn over the screen.

use client::admin::KeyJson;
use ratatui::{
    Frame,
    layout::{Constraint, Position, Rect},
    text::{Line, Span},
    widgets::{Clear, Paragraph, Row},
};

use super::{
    parts::{self, ListView, framed, name},
    theme::Theme,
};
use crate::{
    app::{
        App,
        ask::label,
        dialog::{Dialog, Pick},
        editor::Editor,
        layout,
    },
    text,
};

pub(super) fn draw(app: &App, dialog: &Dialog, theme: Theme, frame: &mut Frame<'_>) {
    match dialog {
        Dialog::Filter => line(app, "Show only", &app.requests.filter, false, theme, frame),
        Dialog::Code(editor) => line(app, "Code of the room", editor, false, theme, frame),
        Dialog::Password(editor) => line(app, "Password", editor, true, theme, frame),
        Dialog::Target(pick) => targets(app, pick, theme, frame),
        Dialog::KeyName(editor) => line(app, "Name of the new key", editor, false, theme, frame),
        Dialog::NewKey { key, elsewhere } => {
            new_key(app, key, elsewhere.as_deref(), theme, frame);
        }
        Dialog::Revoke(key) => revoke(app, key, theme, frame),
    }
}

/// A line of input above the keys.
fn line(
    app: &App,
    name: &str,
    editor: &Editor,
    is_secret: bool,
    theme: Theme,
    frame: &mut Frame<'_>,
) {
    let area = layout::line(app);
    let show =
        |text: &str| if is_secret { "•".repeat(text.chars().count()) } else { text.to_owned() };
    let prompt = format!(" {name}: ");
    // One column stays free for the cursor.
    let room = usize::from(area.width).saturating_sub(text::width(&prompt) + 1);
    let before = end(&show(editor.before()), room);
    let after = show(&editor.text()[editor.before().len()..]);
    let shown = Line::from(vec![
        Span::styled(prompt.clone(), theme.title()),
        Span::raw(before.clone()),
        Span::raw(after),
    ]);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(shown), area);
    let x = u16::try_from(text::width(&prompt) + text::width(&before)).unwrap_or(0);
    frame.set_cursor_position(Position { x: area.x + x.min(area.width - 1), y: area.y });
}

/// The end of a text, in `columns` columns.
fn end(text: &str, columns: usize) -> String {
    let mut from = 0;
    while text::width(&text[from..]) > columns {
        from = text.ceil_char_boundary(from + 1);
    }
    text[from..].to_owned()
}

/// The text of a key in full: it is shown only once.
fn new_key(app: &App, key: &KeyJson, elsewhere: Option<&str>, theme: Theme, frame: &mut Frame<'_>) {
    let columns = 74;
    let text = key.key.as_deref().unwrap_or_default();
    let mut lines = vec![parts::property("Name", &key.name, theme)];
    lines.extend(elsewhere.map(|server| parts::property("Server", server, theme)));
    lines.extend([
        Line::raw("Its text is shown only now. It is for inference; `warren key create`"),
        Line::raw("makes keys for more, and with limits."),
        Line::default(),
    ]);
    lines.extend(text::fold(&text::line(text), columns).into_iter().map(Line::raw));
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    popup(layout::popup(app, layout::POPUP, rows), "A new key", lines, theme, frame);
}

fn revoke(app: &App, key: &KeyJson, theme: Theme, frame: &mut Frame<'_>) {
    let lines = vec![
        parts::property("Name", &key.name, theme),
        parts::property("Begins", &key.prefix, theme),
        Line::default(),
        Line::styled("Revoke it for good, and end its requests? y does.", theme.bad()),
    ];
    popup(layout::revoke(app), "Revoke a key", lines, theme, frame);
}

fn popup(area: Rect, title: &str, lines: Vec<Line<'_>>, theme: Theme, frame: &mut Frame<'_>) {
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(framed(title, true, theme)), area);
}

fn targets(app: &App, pick: &Pick, theme: Theme, frame: &mut Frame<'_>) {
    let area = layout::targets(app);
    let shown = pick.shown(app.targets());
    let title = match pick.filter.text() {
        "" => "Whom to ask; type to search".to_owned(),
        text => format!("Whom to ask: {text}"),
    };
    let listed = ListView {
        title: &title,
        header: &["Who"],
        widths: &[Constraint::Fill(1)],
        list: pick.list,
        is_chosen: true,
    };
    frame.render_widget(Clear, area);
    listed.draw(
        area,
        &shown,
        |target, widths| Row::new([name(&label(target), widths[0])]),
        theme,
        frame,
    );
}
