//! The blocks of a text as lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{
    rows::{Breaks, width, wrap},
    table::Table,
};
use crate::draw::theme::Theme;

/// The longest rule around code, in columns.
const RULE: usize = 60;

/// The most levels of lists and quotes that are indented; deeper ones stay at the last.
const DEEPEST: usize = 12;

/// The events of a text as lines of at most `columns` columns.
pub(super) fn render<'a>(
    events: impl Iterator<Item = Event<'a>>,
    columns: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let mut renderer = Renderer::new(columns, theme);
    events.for_each(|event| renderer.event(event));
    renderer.flush();
    renderer.lines
}

/// The text before the lines of a quote or of an item of a list.
struct Prefix {
    /// The text of the first line, until it was used.
    first: Option<String>,
    rest: String,
    style: Style,
}

struct Renderer {
    theme: Theme,
    columns: usize,
    lines: Vec<Line<'static>>,
    prefixes: Vec<Prefix>,
    /// The numbers of the next items of the lists around; `None` for lists without numbers.
    lists: Vec<Option<u64>>,
    styles: Vec<Style>,
    /// The text of the block that is open.
    inline: Vec<Span<'static>>,
    /// The addresses of the links around.
    links: Vec<String>,
    table: Option<Table>,
    /// The language of the code block that is open; empty if it names none.
    code: Option<String>,
    /// Whether a block has ended, so that an empty line comes before the next.
    is_apart: bool,
}

impl Renderer {
    fn new(columns: usize, theme: Theme) -> Self {
        Self {
            theme,
            columns,
            lines: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            styles: Vec::new(),
            inline: Vec::new(),
            links: Vec::new(),
            table: None,
            code: None,
            is_apart: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.inline_code(&code),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => self.rule(),
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.styles.push(self.heading(level));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.push_prefix("│ ".to_owned(), "│ ".to_owned(), self.theme.quiet());
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code = Some(match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                });
            }
            Tag::List(number) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(number);
            }
            Tag::Item => self.begin_item(),
            Tag::Table(aligned) => {
                self.begin_block();
                self.table = Some(Table::new(aligned));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
                if matches!(tag, Tag::TableHead) {
                    self.styles.push(Style::new().add_modifier(Modifier::BOLD));
                }
            }
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => {
                self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Link { dest_url, .. } => self.begin_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.text("image: ");
                self.begin_link(&dest_url);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
                self.is_apart = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_apart = self.lists.is_empty();
            }
            TagEnd::Item => self.end_item(),
            TagEnd::TableHead => drop(self.styles.pop()),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.inline.push(Span::styled(text.to_owned(), self.style()));
    }

    fn inline_code(&mut self, code: &str) {
        let style = self.style().patch(self.theme.code());
        // Without colours, backquotes distinguish it from the text.
        let marked = if self.theme.has_colour() { code.to_owned() } else { format!("`{code}`") };
        self.inline.push(Span::styled(marked, style));
    }

    fn style(&self) -> Style {
        self.styles.iter().fold(Style::new(), |all, style| all.patch(*style))
    }

    fn heading(&self, level: HeadingLevel) -> Style {
        match level {
            HeadingLevel::H1 => self.theme.title().add_modifier(Modifier::UNDERLINED),
            HeadingLevel::H2 => self.theme.title(),
            _ => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    fn begin_link(&mut self, address: &str) {
        self.links.push(address.to_owned());
        self.styles.push(Style::new().add_modifier(Modifier::UNDERLINED));
    }

    /// Writes the address after the words of a link, unless they are the address.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some(address) = self.links.pop() else { return };
        let is_shown = self.inline.last().is_some_and(|words| {
            *words.content == address || format!("mailto:{}", words.content) == address
        });
        if !is_shown && !address.is_empty() {
            self.inline.push(Span::styled(format!(" ({address})"), self.theme.quiet()));
        }
    }

    /// Begins a block. Text that is still open belongs to the list's item, and ends here.
    fn begin_block(&mut self) {
        self.flush();
        self.gap();
    }

    fn end_block(&mut self) {
        self.flush();
        self.is_apart = true;
    }

    /// Writes the empty line between two blocks, if it is due.
    fn gap(&mut self) {
        if std::mem::take(&mut self.is_apart) {
            self.push_lines(vec![Line::default()]);
        }
    }

    fn begin_item(&mut self) {
        self.gap();
        let first = match self.lists.last_mut() {
            Some(Some(number)) => {
                let first = format!("{number}. ");
                *number = number.saturating_add(1);
                first
            }
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(first.chars().count());
        self.push_prefix(first, rest, Style::new());
    }

    fn end_item(&mut self) {
        self.flush();
        // An item without text still shows its mark.
        if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
            self.push_lines(vec![Line::default()]);
        }
        self.prefixes.pop();
    }

    fn push_prefix(&mut self, first: String, rest: String, style: Style) {
        self.prefixes.push(Prefix { first: Some(first), rest, style });
    }

    fn end_code(&mut self) {
        let language = self.code.take().unwrap_or_default();
        let language = language.split([' ', ',']).next().unwrap_or_default();
        let rule = self.room().min(RULE);
        let head =
            if language.is_empty() { "─".repeat(rule) } else { format!("── {language}") };
        let mut code = std::mem::take(&mut self.inline);
        code.iter_mut().for_each(|span| span.style = self.theme.code());
        if let Some(last) = code.last_mut()
            && last.content.ends_with('\n')
        {
            last.content.to_mut().pop();
        }
        let quiet = self.theme.quiet();
        let mut lines = wrap(&[Span::styled(head, quiet)], rule, Breaks::Anywhere);
        // A long name of a language is cut off.
        lines.truncate(1);
        lines.extend(wrap(&code, self.room(), Breaks::Anywhere));
        lines.push(Line::styled("─".repeat(rule), quiet));
        self.push_lines(lines);
        self.is_apart = true;
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            let lines = table.lines(self.room(), self.theme);
            self.push_lines(lines);
            self.is_apart = true;
        }
    }

    fn rule(&mut self) {
        self.begin_block();
        let rule = "─".repeat(self.room().min(RULE));
        self.push_lines(vec![Line::styled(rule, self.theme.quiet())]);
        self.is_apart = true;
    }

    /// The columns that the prefixes leave.
    fn room(&self) -> usize {
        let taken: usize = self.indented().map(|prefix| prefix.rest.chars().count()).sum();
        self.columns.saturating_sub(taken).max(1)
    }

    fn indented(&self) -> impl Iterator<Item = &Prefix> {
        self.prefixes.iter().take(self.deepest())
    }

    /// The number of prefixes that are shown. They leave room for text in a narrow terminal, too.
    fn deepest(&self) -> usize {
        DEEPEST.min(self.columns / 4)
    }

    /// Ends the open text, if there is any.
    fn flush(&mut self) {
        let mut inline = std::mem::take(&mut self.inline);
        if let Some(last) = inline.last_mut() {
            let length = last.content.trim_end_matches('\n').len();
            last.content.to_mut().truncate(length);
        }
        if width(&inline) > 0 {
            let lines = wrap(&inline, self.room(), Breaks::Words);
            self.push_lines(lines);
        }
    }

    fn push_lines(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            let mut spans = self.take_prefix();
            spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
            self.lines.push(Line::from(spans));
        }
    }

    fn take_prefix(&mut self) -> Vec<Span<'static>> {
        let most = self.deepest();
        let prefix = |prefix: &mut Prefix| {
            let text = prefix.first.take().unwrap_or_else(|| prefix.rest.clone());
            Span::styled(text, prefix.style)
        };
        self.prefixes.iter_mut().take(most).map(prefix).collect()
    }
}
