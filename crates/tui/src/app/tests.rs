//! The interface's reactions to keys, the mouse and news.

use client::admin::{
    KeyJson,
    status::{Health, HealthDetails},
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use protocol::room::{RoomEvent, event::EventEnvelope};
use ratatui::layout::Size;
use serde_json::json;

use super::{
    App, Link, Screen, Settings,
    activity::MOST,
    ask::Progress,
    dialog::Dialog,
    event::{Effect, Event, Piece, PollAnswers, RoomNews, Target},
    fixture::{cluster, participant, refused, request, room, session, unreachable},
    layout,
    pages::PageNews,
    room::WatchState,
    rooms::Part,
    workspace::{
        Part::{Members, Sessions},
        WorkspaceReport,
    },
};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(1_795_170_970 + secs).unwrap()
}

fn app() -> App {
    let servers = vec!["http://a".to_owned(), "http://b".to_owned()];
    let settings = Settings { servers, ..Settings::default() };
    let mut app = App::new(settings, Size { width: 80, height: 24 }, at(0));
    app.start();
    app
}

/// One that has heard of its server: a model, a room, requests.
fn informed() -> App {
    let mut app = app();
    hear(&mut app, 1, 1);
    app
}

fn hear(app: &mut App, epoch: u64, secs: i64) -> Vec<Effect> {
    let details = HealthDetails { models: vec!["m".to_owned()], ..HealthDetails::default() };
    let health = Ok(Health { details: Some(details), ..Health::default() });
    let (requests, rooms) = (Some(Ok(vec![request(2), request(1)])), Some(Ok(vec![room()])));
    let polled =
        Box::new(PollAnswers { health, stats: None, requests, rooms, names: <_>::default() });
    app.handle(at(secs), Event::Polled { epoch, polled })
}

fn lose(app: &mut App, secs: i64) {
    let health = Err(unreachable());
    let polled = Box::new(PollAnswers {
        health,
        stats: None,
        requests: None,
        rooms: None,
        names: <_>::default(),
    });
    app.handle(at(secs), Event::Polled { epoch: 1, polled });
}

fn key(app: &mut App, code: KeyCode) -> Vec<Effect> {
    app.handle(at(9), Event::Key(KeyEvent::from(code)))
}

fn keys(app: &mut App, text: &str) -> Vec<Effect> {
    text.chars().flat_map(|c| key(app, KeyCode::Char(c))).collect()
}

fn mouse(app: &mut App, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
    let modifiers = KeyModifiers::NONE;
    app.handle(at(9), Event::Mouse(MouseEvent { kind, column, row, modifiers }))
}

fn click(app: &mut App, column: u16, row: u16) -> Vec<Effect> {
    mouse(app, MouseEventKind::Down(MouseButton::Left), column, row)
}

fn texts(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(|effect| format!("{effect:?}")).collect()
}

#[test]
fn it_begins_with_its_server_and_the_room_that_was_named() {
    let settings = Settings {
        servers: vec!["http://a".to_owned()],
        room: Some("swift-eagle-42".to_owned()),
        password: Some("pw".into()),
        colour: false,
    };
    let mut app = App::new(settings, Size::new(80, 24), at(0));
    let effects = app.start();
    assert!(matches!(effects[0], Effect::Poll { epoch: 1, server: 0 }));
    assert!(matches!(&effects[1], Effect::Watch { watch: 1, password: Some(_), .. }));
    assert_eq!(app.screen, Screen::Rooms);
    // A room that was not named never gets that password.
    let effects = app.look_at_room("other-room-10");
    assert!(matches!(&effects[0], Effect::Watch { password: None, .. }));
}

#[test]
fn digits_and_tab_go_through_the_screens() {
    let mut app = app();
    for (digit, screen) in [('2', Screen::Rooms), ('3', Screen::Requests), ('9', Screen::Help)] {
        key(&mut app, KeyCode::Char(digit));
        assert_eq!(app.screen, screen);
    }
    key(&mut app, KeyCode::Tab);
    assert_eq!(app.screen, Screen::Overview);
    key(&mut app, KeyCode::BackTab);
    assert_eq!(app.screen, Screen::Help);
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.screen, Screen::Overview);
}

#[test]
fn a_list_is_asked_for_only_while_it_is_shown() {
    let mut app = informed();
    let effects = texts(&key(&mut app, KeyCode::Char('6')));
    assert_eq!(effects, ["Follow { follow: 1, page: Mesh }"]);
    assert!(key(&mut app, KeyCode::Char('?')).is_empty(), "the help hides it for a moment");
    assert!(key(&mut app, KeyCode::Esc).is_empty());
    let effects = texts(&key(&mut app, KeyCode::Char('7')));
    assert_eq!(effects, ["Follow { follow: 2, page: Usage(Key) }"]);
    let effects = texts(&key(&mut app, KeyCode::Right));
    assert_eq!(effects, ["Follow { follow: 3, page: Usage(Model) }"]);
    assert_eq!(texts(&key(&mut app, KeyCode::Char('1'))), ["Unfollow"]);
    let late = PageNews::Usage(Ok(Default::default()));
    app.handle(at(9), Event::Page { follow: 3, news: Box::new(late) });
    assert_eq!(app.usage.reading.known(), None, "an answer that is too late");
}

fn made_key() -> KeyJson {
    serde_json::from_value(json!({
        "id": "k-1", "name": "phone", "prefix": "wk_1", "scopes": [], "models": [], "limits": {},
        "room": null, "created_at": "2026-11-01T00:00:00Z", "expires_at": null, "revoked_at": null,
        "last_used_at": null, "key": "wk_12",
    }))
    .unwrap()
}

#[test]
fn a_key_that_another_server_made_names_it_and_a_refusal_there_is_not_shown() {
    let mut app = informed();
    keys(&mut app, "8s");
    let refused = Box::new(PageNews::KeyMade(Err(refused(403))));
    app.handle(at(9), Event::KeyChanged { server: 0, news: refused });
    assert_eq!((&app.access_keys.refused, app.dialog.is_none()), (&None, true));
    let news = Box::new(PageNews::KeyMade(Ok(made_key())));
    assert_eq!(texts(&app.handle(at(9), Event::KeyChanged { server: 0, news })), [""; 0]);
    let Some(Dialog::NewKey { elsewhere, .. }) = &app.dialog else { panic!("{:?}", app.dialog) };
    assert_eq!(elsewhere.as_ref(), app.settings.servers.first());
}

#[test]
fn a_click_closes_a_dialog_only_outside_of_it() {
    let mut app = informed();
    let news = Box::new(PageNews::Keys(Ok(vec![made_key()])));
    keys(&mut app, "8");
    app.handle(at(9), Event::Page { follow: 1, news });
    for opens in ["c", "r"] {
        keys(&mut app, opens);
        let area = layout::dialog(&app, app.dialog.as_ref().unwrap());
        click(&mut app, area.x + 1, area.y);
        click(&mut app, area.right() - 1, area.bottom() - 1);
        assert!(app.dialog.is_some(), "{opens}");
        click(&mut app, area.x, area.y - 1);
        assert!(app.dialog.is_none(), "{opens}");
    }
}

#[test]
fn a_key_is_made_by_its_name_and_revoked_only_with_a_y() {
    let mut app = informed();
    keys(&mut app, "8c");
    assert!(keys(&mut app, "phone").is_empty());
    let effects = texts(&key(&mut app, KeyCode::Enter));
    assert_eq!(effects, [r#"MakeKey { name: "phone" }"#]);
    let made = made_key();
    let news = Box::new(PageNews::KeyMade(Ok(made.clone())));
    let effects = texts(&app.handle(at(9), Event::KeyChanged { server: 0, news }));
    assert_eq!(effects, ["Follow { follow: 2, page: Keys }"], "the list is asked for again");
    keys(&mut app, "xq");
    click(&mut app, 1, 10);
    assert!(matches!(app.dialog, Some(Dialog::NewKey { .. })), "only Enter and Esc put it away");
    key(&mut app, KeyCode::Enter);
    app.handle(at(9), Event::Page { follow: 2, news: Box::new(PageNews::Keys(Ok(vec![made]))) });
    for no in [KeyCode::Esc, KeyCode::Char('n')] {
        keys(&mut app, "r");
        assert!(key(&mut app, KeyCode::Enter).is_empty() && app.dialog.is_some());
        assert!(key(&mut app, no).is_empty() && app.dialog.is_none());
    }
    keys(&mut app, "r");
    let effects = texts(&keys(&mut app, "y"));
    assert_eq!(effects, [r#"RevokeKey { id: "k-1" }"#]);
    let refused = Box::new(PageNews::KeyRevoked(Err(refused(403))));
    app.handle(at(9), Event::KeyChanged { server: 0, news: refused });
    assert!(app.access_keys.refused.is_some());
}

#[test]
fn a_question_goes_with_the_conversation_until_a_new_one_begins() {
    let mut app = informed();
    keys(&mut app, "4one");
    key(&mut app, KeyCode::Enter);
    for piece in [Piece::Text("1".to_owned()), Piece::Done { tokens: None, metrics: None }] {
        app.handle(at(9), Event::Answer { question: 1, piece });
    }
    keys(&mut app, "itwo");
    let effects = key(&mut app, KeyCode::Enter);
    let Effect::Ask(question) = &effects[0] else { panic!("{effects:?}") };
    assert_eq!((question.before.len(), question.before[0].answer.as_str()), (1, "1"));
    key(&mut app, KeyCode::Esc);
    keys(&mut app, "nithree");
    let effects = key(&mut app, KeyCode::Enter);
    assert!(matches!(&effects[0], Effect::Ask(question) if question.before.is_empty()));
}

#[test]
fn keys_and_peers_have_their_names() {
    let mut app = informed();
    app.names.insert("k-1".to_owned(), "laptop".to_owned());
    app.names.insert("d0d0".to_owned(), "mac".to_owned());
    let shown =
        ["k-1", "k-2", "local", "peer:d0d0", "peer:abcdef0123"].map(|key| app.key_name(key));
    assert_eq!(shown, ["laptop", "k-2", "local", "mac", "peer abcdef01"]);
}

#[test]
fn the_tabs_leave_room_for_the_servers_address() {
    let tabs = layout::tabs(&app());
    assert_eq!(tabs.len(), 9);
    assert!(tabs.last().unwrap().0.right() <= 64, "{tabs:?}");
}

#[test]
fn escape_in_the_help_goes_back_to_where_one_was() {
    let mut app = informed();
    for (digit, screen) in
        [('1', Screen::Overview), ('2', Screen::Rooms), ('3', Screen::Requests), ('4', Screen::Ask)]
    {
        key(&mut app, KeyCode::Char(digit));
        key(&mut app, KeyCode::Esc);
        for help in [KeyCode::Char('?'), KeyCode::Char('9')] {
            key(&mut app, help);
            key(&mut app, help);
            assert_eq!(app.screen, Screen::Help);
            key(&mut app, KeyCode::Esc);
            assert_eq!(app.screen, screen);
            assert!(!app.is_typing(), "a key does what it did before");
        }
    }
}

#[test]
fn q_leaves_but_not_while_one_writes() {
    let mut app = informed();
    assert!(matches!(key(&mut app, KeyCode::Char('q'))[..], [Effect::Quit]));
    assert!(keys(&mut app, "4q5").is_empty());
    assert_eq!((app.screen, app.ask.prompt.text()), (Screen::Ask, "q5"));
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(matches!(app.handle(at(9), Event::Key(ctrl_c))[..], [Effect::Quit]));
}

#[test]
fn a_lost_server_is_shown_with_its_time_and_all_stays_until_it_is_back() {
    let mut app = informed();
    lose(&mut app, 5);
    lose(&mut app, 8);
    assert!(matches!(&app.link, Link::Lost(since, _) if *since == at(5)));
    assert_eq!((app.rooms.entries().len(), app.requests.count()), (1, 2));
    assert_eq!(app.overview.details().unwrap().models, ["m"]);
    hear(&mut app, 1, 9);
    assert_eq!(app.link, Link::Here);
}

fn tell(app: &mut App, watch: u64, sessions: &[u128]) {
    let sessions = sessions.iter().copied().map(session).collect();
    let came = Box::new(Ok(WorkspaceReport { cluster: cluster(), sessions }));
    app.handle(at(9), Event::Workspace { watch, came });
}

#[test]
fn a_workspace_is_asked_for_as_long_as_it_is_shown() {
    let mut app = informed();
    assert_eq!(texts(&keys(&mut app, "5")), ["WatchWorkspace { watch: 1 }"]);
    assert_eq!(texts(&keys(&mut app, "5")), [""; 0]);
    // The help hides it for a moment only.
    assert_eq!(texts(&keys(&mut app, "?")), [""; 0]);
    assert_eq!(texts(&key(&mut app, KeyCode::Esc)), [""; 0]);
    assert_eq!(texts(&keys(&mut app, "1")), ["UnwatchWorkspace"]);
    assert_eq!(texts(&key(&mut app, KeyCode::Char('?'))), [""; 0]);
    key(&mut app, KeyCode::Esc);
    assert_eq!(texts(&click(&mut app, 33, 0)), ["WatchWorkspace { watch: 2 }"]);
    // Nobody waits for the earlier answers any more.
    tell(&mut app, 1, &[1]);
    assert_eq!(app.workspace.sessions.len(), 0);
    tell(&mut app, 2, &[1]);
    assert_eq!((app.workspace.sessions.len(), app.workspace.members.len()), (1, 3));
    let effects = keys(&mut app, "s");
    let expected = ["Unwatch { watch: 1 }", "UnwatchWorkspace", "Poll { epoch: 2, server: 1 }"];
    assert_eq!(texts(&effects[..3]), expected);
    assert_eq!(texts(&effects[3..]), ["WatchWorkspace { watch: 3 }"]);
    assert_eq!((app.workspace.sessions.len(), app.workspace.members.len()), (0, 0));
}

#[test]
fn keys_and_the_mouse_choose_a_session_and_show_it_whole() {
    let mut app = informed();
    keys(&mut app, "5");
    tell(&mut app, 1, &[1, 2, 3]);
    key(&mut app, KeyCode::Down);
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.workspace.whole, Some(session(2).id));
    // The next one, while one is shown.
    key(&mut app, KeyCode::Down);
    assert_eq!(app.workspace.whole, Some(session(3).id));
    key(&mut app, KeyCode::Esc);
    assert_eq!((app.workspace.whole, app.screen), (None, Screen::Workspace));
    let first = layout::rows(layout::workspace(&app).sessions, true);
    click(&mut app, first.x + 2, first.y);
    assert_eq!((app.workspace.list.at, app.workspace.whole), (0, None));
    click(&mut app, first.x + 2, first.y);
    assert_eq!(app.workspace.whole, Some(session(1).id));
    click(&mut app, 0, 12);
    assert_eq!(app.workspace.whole, None);
    let machines = layout::rows(layout::workspace(&app).members, true);
    mouse(&mut app, MouseEventKind::ScrollDown, machines.x, machines.y);
    assert_eq!((app.workspace.part, app.workspace.members_list.at), (Members, 2));
    key(&mut app, KeyCode::Left);
    assert_eq!(app.workspace.part, Sessions);
}

#[test]
fn another_server_is_another_world() {
    let mut app = informed();
    let effects = keys(&mut app, "s");
    let expected = ["Unwatch { watch: 1 }", "Poll { epoch: 2, server: 1 }"];
    assert_eq!(texts(&effects), expected);
    assert_eq!(
        (app.server_name(), app.rooms.entries().len(), app.requests.count()),
        ("http://b", 0, 0)
    );
    // Nobody waits for late news of the first one.
    hear(&mut app, 1, 3);
    assert_eq!((app.rooms.entries().len(), &app.link), (0, &Link::Asking));
    let effects = hear(&mut app, 2, 4);
    assert!(matches!(effects[..], [Effect::Watch { watch: 2, .. }]));
}

#[test]
fn the_first_room_opens_by_itself_and_others_by_their_code() {
    let mut app = app();
    let effects = hear(&mut app, 1, 1);
    assert!(matches!(&effects[..], [Effect::Watch { watch: 1, .. }]));
    assert!(hear(&mut app, 1, 2).is_empty());
    keys(&mut app, "oABC234");
    let effects = key(&mut app, KeyCode::Enter);
    assert!(matches!(&effects[..], [Effect::Watch { watch: 2, code, .. }] if code == "ABC234"));
    assert_eq!(app.screen, Screen::Rooms);
}

#[test]
fn a_password_is_asked_for_and_tried() {
    let mut app = informed();
    let news = Box::new(RoomNews::Refused(refused(401)));
    app.handle(at(2), Event::Room { watch: 1, news });
    assert_eq!(app.rooms.open().unwrap().watched, WatchState::Locked);
    keys(&mut app, "2psecret");
    let effects = key(&mut app, KeyCode::Enter);
    assert_eq!(texts(&effects[..1]), ["Unwatch { watch: 1 }"]);
    let Effect::Watch { watch: 2, password: Some(password), .. } = &effects[1] else {
        panic!("{effects:?}")
    };
    assert_eq!(password.expose(), "secret");
    // Nobody waits for late news of the first try.
    let late = Box::new(RoomNews::Refused(refused(401)));
    app.handle(at(3), Event::Room { watch: 1, news: late });
    assert_eq!(app.rooms.open().unwrap().watched, WatchState::Asking);
}

#[test]
fn a_question_goes_to_the_chosen_target() {
    let mut app = informed();
    let people = Box::new(RoomNews::People(vec![participant("ada")]));
    app.handle(at(2), Event::Room { watch: 1, news: people });
    keys(&mut app, "4");
    key(&mut app, KeyCode::Esc);
    key(&mut app, KeyCode::Right);
    keys(&mut app, "ai why? ");
    let effects = key(&mut app, KeyCode::Enter);
    let Effect::Ask(question) = &effects[0] else { panic!("{effects:?}") };
    let (code, selector) = ("swift-eagle-42".to_owned(), "*".to_owned());
    assert_eq!(question.to, Target::Room { code, selector });
    assert_eq!((question.prompt.as_str(), question.aloud), ("why?", true));
    assert_eq!(app.ask.prompt.text(), "");
}

#[test]
fn a_server_is_never_asked_aloud_and_without_a_target_nothing_is_asked() {
    let mut app = informed();
    keys(&mut app, "4");
    assert!(key(&mut app, KeyCode::Enter).is_empty());
    app.ask.aloud = true;
    keys(&mut app, "x");
    assert!(matches!(&key(&mut app, KeyCode::Enter)[..], [Effect::Ask(q)] if !q.aloud));
    let mut nobody = self::app();
    keys(&mut nobody, "4x");
    assert!(key(&mut nobody, KeyCode::Enter).is_empty());
}

#[test]
fn esc_stops_an_answer() {
    let mut app = informed();
    keys(&mut app, "4x");
    key(&mut app, KeyCode::Enter);
    app.handle(at(9), Event::Answer { question: 1, piece: Piece::Text("y".to_owned()) });
    assert!(matches!(key(&mut app, KeyCode::Esc)[..], [Effect::Cancel]));
    assert_eq!(app.ask.answer.as_ref().unwrap().state, Progress::Cancelled);
    assert!(key(&mut app, KeyCode::Esc).is_empty());
}

#[test]
fn a_target_is_picked_from_a_list_by_typing() {
    let mut app = informed();
    keys(&mut app, "4");
    key(&mut app, KeyCode::Esc);
    keys(&mut app, "manybody");
    key(&mut app, KeyCode::Enter);
    assert!(matches!(&app.ask.to, Some(Target::Room { selector, .. }) if selector == "*"));
    assert!(app.is_typing() && app.dialog.is_none());
}

#[test]
fn a_filter_is_typed_kept_and_given_up() {
    let mut app = informed();
    keys(&mut app, "3/nothing");
    assert!(matches!(app.dialog, Some(Dialog::Filter)));
    assert_eq!(app.requests.shown().len(), 0);
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.requests.filter.text(), "nothing");
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.requests.shown().len(), 2);
    keys(&mut app, "/x");
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.requests.filter.text(), "");
}

#[test]
fn one_request_is_shown_whole_and_then_the_next() {
    let mut app = informed();
    keys(&mut app, "3");
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.requests.whole, Some(2));
    key(&mut app, KeyCode::Down);
    assert_eq!(app.requests.whole, Some(1));
    key(&mut app, KeyCode::Esc);
    assert_eq!(app.requests.whole, None);
}

#[test]
fn a_click_on_a_tab_goes_there() {
    let mut app = informed();
    for (place, screen) in layout::tabs(&app) {
        click(&mut app, place.x + 1, place.y);
        assert_eq!(app.screen, screen);
    }
    click(&mut app, 79, 0);
    assert_eq!(app.screen, Screen::Help);
}

#[test]
fn a_click_chooses_a_row_and_another_opens_it() {
    let mut app = informed();
    keys(&mut app, "3");
    let first = layout::rows(layout::frame(&app).body, true);
    click(&mut app, first.x, first.y + 1);
    assert_eq!((app.requests.list.at, app.requests.whole), (1, None));
    click(&mut app, first.x, first.y + 1);
    assert_eq!(app.requests.whole, Some(1));
    click(&mut app, 0, 23);
    assert_eq!(app.requests.whole, None);
    // Below the last row there is nothing to choose.
    click(&mut app, first.x, first.y + 2);
    assert_eq!(app.requests.list.at, 1);
}

#[test]
fn a_click_on_a_room_of_the_overview_opens_it() {
    let mut app = informed();
    let rooms = layout::rows(layout::overview(&app).rooms, true);
    click(&mut app, rooms.x, rooms.y);
    assert_eq!(app.screen, Screen::Rooms);
}

#[test]
fn the_wheel_moves_what_it_is_over() {
    let mut app = informed();
    let room = app.rooms.open_mut().unwrap();
    for second in 0..40 {
        room.activity.people(second, "ada", "joined");
    }
    keys(&mut app, "2");
    let area = layout::rooms(&app).activity;
    mouse(&mut app, MouseEventKind::ScrollUp, area.x + 1, area.y + 1);
    assert_eq!((app.rooms.part, app.rooms.open().unwrap().below), (Part::Activity, 3));
    for _ in 0..90 {
        mouse(&mut app, MouseEventKind::ScrollUp, area.x + 1, area.y + 1);
    }
    let most = 40 - layout::page(area, false);
    assert_eq!(app.rooms.open().unwrap().below, most);
    key(&mut app, KeyCode::End);
    assert_eq!(app.rooms.open().unwrap().below, 0);
}

#[test]
fn a_view_that_was_scrolled_back_stays_there() {
    let mut app = informed();
    let room = app.rooms.open_mut().unwrap();
    (0..40).for_each(|second| room.activity.people(second, "ada", "joined"));
    room.below = 5;
    let news = Box::new(RoomNews::Lost(unreachable()));
    app.handle(at(2), Event::Room { watch: 1, news });
    assert_eq!(app.rooms.open().unwrap().below, 6);
}

#[test]
fn a_view_stays_where_it_is_until_its_lines_are_forgotten() {
    let mut app = informed();
    let room = app.rooms.open_mut().unwrap();
    (0..MOST as u64).for_each(|second| room.activity.people(second, "ada", "joined"));
    room.below = 5;
    let joined = |app: &mut App| {
        let (event, room_code) = (RoomEvent::ParticipantJoined(participant("bob")), String::new());
        let news = RoomNews::Happened(EventEnvelope { event, timestamp: 0, room_code });
        app.handle(at(2), Event::Room { watch: 1, news: Box::new(news) });
    };
    joined(&mut app);
    assert_eq!(app.rooms.open().unwrap().below, 6);
    (0..MOST).for_each(|_| joined(&mut app));
    let most = MOST - layout::page(layout::rooms(&app).activity, false);
    assert_eq!(app.rooms.open().unwrap().below, most);
}

#[test]
fn a_paste_goes_where_one_writes_and_nowhere_else() {
    let mut app = informed();
    let paste = |app: &mut App, text: &str| app.handle(at(9), Event::Paste(text.to_owned()));
    paste(&mut app, "lost");
    keys(&mut app, "4");
    paste(&mut app, "two\nlines\u{1b}");
    assert_eq!(app.ask.prompt.text(), "two\nlines\u{fffd}");
    key(&mut app, KeyCode::Esc);
    keys(&mut app, "o");
    paste(&mut app, " swift-eagle-42\n");
    assert!(matches!(&app.dialog, Some(Dialog::Code(code)) if code.text() == "swift-eagle-42"));
}

#[test]
fn a_smaller_terminal_keeps_the_choice_in_sight() {
    let mut app = informed();
    let many = (3..60).rev().map(request).collect();
    let polled = PollAnswers {
        health: Err(unreachable()),
        stats: None,
        requests: Some(Ok(many)),
        rooms: None,
        names: <_>::default(),
    };
    app.handle(at(2), Event::Polled { epoch: 1, polled: Box::new(polled) });
    app.handle(at(2), Event::Resize(120, 70));
    keys(&mut app, "3G");
    app.handle(at(3), Event::Resize(80, 24));
    let (list, page) = (app.requests.list, layout::page(layout::frame(&app).body, true));
    assert!(list.at == 58 && list.top + page > list.at, "{list:?}");
}
