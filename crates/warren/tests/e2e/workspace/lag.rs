//! A client that does not read for a while: its screen is the session's all the same.

use testkit::workspace::{Follow, Step, WorkspaceClient};
use vt100::{Cell, Color, Parser, Screen};

use super::kit::{Place, Viewer, about};

/// Draws all over the screen, in colours, wide characters and both screens, and much of it; then rests.
const DRAWS: &str = r#"stty -echo; echo ready; read x; LC_ALL=C awk 'BEGIN {
    srand(7);
    for (i = 0; i < 400000; i++) {
        printf "\033[%d;%dH\033[3%d;4%dm%c", 1+rand()*24, 1+rand()*80, rand()*8, rand()*8, 33+rand()*90;
        if (i % 997 == 0) printf "\033[%d;%dr\033[24;1H\n\033[r", 2+rand()*5, 10+rand()*10;
        if (i % 5003 == 0) printf "\033[2J";
        if (i % 7001 == 0) printf "\033[1m\033[7m\344\270\255\033[0m";
    }
    printf "\033[0m\033[12;1Hthe end";
}'; read x"#;

/// What is to be seen in a cell: its text, colours and attributes. Of a blank one only the ground is,
/// whether it was written or erased.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    text: String,
    ground: Color,
    ink: Option<(Color, bool, bool, bool)>,
}

impl Seen {
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
        let seen = |screen: &Screen| screen.cell(row, col).map(Seen::of);
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
    let place = Place::start().await;
    let mut client = place.client().await;
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
