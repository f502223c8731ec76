//! A client that does not read for a while: its screen is the session's all the same.

use testkit::{
    Random,
    workspace::{Follow, Step, WorkspaceClient},
};
use vt100::{Cell, Color, Parser, Screen};

use super::kit::{Viewer, WorkspaceHost, about};

/// Shows a drawing, and rests.
const DRAWS: &str = "stty -echo; echo ready; read x; cat drawing; read x";

/// A drawing all over the screen, the same each time: in colours, with wide characters, with scrolling
/// and erasing. Of the wide ones first halves are written over, and no second ones: then the
/// terminal of these tests, other than that of a session, keeps the colours of the first.
fn drawing() -> String {
    let mut random = Random::new(7);
    let mut text = String::new();
    for step in 0..400_000 {
        let mut below = |end| random.below(end);
        let character = match below(8) {
            0 => ['漢', '字', '中', '！'][below(4) as usize],
            _ => char::from(b'!' + below(90) as u8),
        };
        let (row, column, ink, ground) = (1 + below(24), 1 + 2 * below(40), below(8), below(8));
        let pen = if below(9) == 0 { "1;7" } else { "0" };
        text.push_str(&format!("\x1b[{row};{column}H\x1b[{pen};3{ink};4{ground}m{character}"));
        if step % 997 == 0 {
            text.push_str(&format!("\x1b[{};{}r\x1b[24;1H\n\x1b[r", 2 + below(5), 10 + below(10)));
        }
        if step % 5003 == 0 {
            text.push_str("\x1b[2J");
        }
    }
    text + "\x1b[0m\x1b[12;1Hthe end"
}

/// The visible part of a cell: its text, colours and attributes. Of a blank one only the ground counts,
/// whether it was written or erased.
#[derive(Debug, Clone, PartialEq)]
struct VisibleCell {
    text: String,
    ground: Color,
    ink: Option<(Color, bool, bool, bool)>,
}

impl VisibleCell {
    fn of(cell: &Cell) -> Self {
        let text = cell.contents().trim_end().to_owned();
        let (ink, ground) = match cell.inverse() {
            true => (cell.bgcolor(), cell.fgcolor()),
            false => (cell.fgcolor(), cell.bgcolor()),
        };
        let is_inked = !text.is_empty() || cell.inverse();
        let ink = is_inked.then(|| (ink, cell.bold(), cell.underline(), cell.inverse()));
        Self { text, ground, ink }
    }
}

/// Whether two terminals show the same.
#[track_caller]
fn assert_same(one: &Parser, other: &Parser) {
    let (one, other) = (one.screen(), other.screen());
    assert_eq!(one.size(), other.size());
    assert_eq!(one.cursor_position(), other.cursor_position());
    let (rows, cols) = one.size();
    for (row, col) in (0..rows.get()).flat_map(|row| (0..cols.get()).map(move |col| (row, col))) {
        let seen = |screen: &Screen| screen.cell(row, col).map(VisibleCell::of);
        assert_eq!(seen(one), seen(other), "in row {row}, column {col}");
    }
}

/// A terminal in the hands of one who looks at a session.
struct Eye {
    client: WorkspaceClient,
    follow: Follow,
    terminal: Parser,
}

impl Eye {
    async fn of(mut client: WorkspaceClient, id: &str) -> Self {
        let mut follow = Follow::new(id);
        client.say(follow.attach()).await;
        let mut eye = Self { client, follow, terminal: parser(80, 24) };
        while eye.follow.snapshots() == 0 {
            eye.step().await;
        }
        eye
    }

    async fn step(&mut self) {
        let heard = self.client.next().await.expect("the connection stays");
        match self.follow.take(&heard).unwrap() {
            Step::Nothing => {}
            Step::Paint(cols, rows, data) => {
                self.terminal = parser(cols, rows);
                self.terminal.process(data.as_bytes());
            }
            Step::Write(text) => self.terminal.process(text.as_bytes()),
        }
    }

    async fn reads_until(&mut self, seq: u64) {
        while self.follow.seq() < seq {
            self.step().await;
        }
    }
}

fn parser(cols: u16, rows: u16) -> Parser {
    let size = |size| std::num::NonZeroU16::new(size).expect("a size");
    Parser::new(size(rows), size(cols), 0)
}

#[tokio::test]
async fn the_screen_of_one_who_was_too_slow_is_the_sessions_own() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    std::fs::write(place.path().join("drawing"), drawing()).unwrap();
    let id = place.runs(&mut client, DRAWS).await;
    let mut slow = Eye::of(place.slow_client().await, &id).await;
    let mut quick = Eye::of(place.client().await, &id).await;
    let mut starter = Viewer::of(client, &id).await;
    starter.types("\n").await;
    // The last that is written.
    while !quick.terminal.screen().contents().contains("the end") {
        quick.step().await;
    }
    // All that there is: a look with fresh eyes has it.
    let fresh = Eye::of(place.client().await, &id).await;
    quick.reads_until(fresh.follow.seq()).await;
    slow.reads_until(fresh.follow.seq()).await;
    assert!(slow.follow.snapshots() > 1, "it was never behind");
    assert_same(&slow.terminal, &fresh.terminal);
    assert_same(&quick.terminal, &fresh.terminal);
    assert_eq!(fresh.terminal.screen().cursor_position(), (11, 7));
    slow.client.say(about("kill_session", &id)).await;
}
