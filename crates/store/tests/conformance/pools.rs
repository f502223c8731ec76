//! Limits that several servers share, in the database.

use std::{thread, time::Duration};

use base::Money;
use store::{
    PostgresStore, SharedStore, UsageEntry, UsageStore, WaitingRows,
    pools::{Answer, Measure, PoolId, Report},
};

use testkit::postgres::PostgresServer;

use super::{
    shared::{database, open, store},
    usage::entry,
};

const DAY: u64 = 86_400_000;

fn pool(measure: Measure) -> (PoolId, u64) {
    let is_period = matches!(measure, Measure::Budget | Measure::Money);
    let (began_ms, ends) = if is_period { (10 * DAY, 40 * DAY) } else { (0, 0) };
    (PoolId { key: "k".into(), measure, began_ms }, ends)
}

fn report(measure: Measure, settled: u64, reserved: u64, need: u64) -> Report {
    let (pool, ends_ms) = pool(measure);
    Report { pool, limit: 1_000, ends_ms, settled: Some(settled), reserved, keep: need, need }
}

/// The answer to one report.
fn answer_to(store: &PostgresStore, run: &str, number: u64, report: Report) -> Answer {
    let answers = store.report(run, number, &[report]).unwrap();
    answers.answers.into_iter().next().unwrap()
}

fn rows(run: &str, first: i64, rows: Vec<UsageEntry>) -> WaitingRows<UsageEntry> {
    WaitingRows { source: run.to_owned(), rows: (first..).zip(rows).collect() }
}

#[test]
fn servers_that_ask_at_once_get_no_more_than_there_is() {
    let url = database(PostgresServer::shared());
    let granted: u64 = thread::scope(|scope| {
        let ask = |server: u64| {
            let url = &url;
            scope.spawn(move || {
                let (store, run) = (open(url), format!("run-{server}"));
                let mut last = 0;
                for number in 1..=20 {
                    let ask = report(Measure::Concurrent, 0, last, 20);
                    last = answer_to(&store, &run, number, ask).granted;
                }
                last
            })
        };
        let asking: Vec<_> = (0..4).map(ask).collect();
        asking.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(granted, 1_000, "all of it, once");
    assert_eq!(open(&url).report("run-0", 99, &[]).unwrap().servers, 4);
}

#[test]
fn rows_of_usage_take_the_place_of_what_was_told() {
    let store = store();
    let before = [entry(11 * DAY, "k", "m", (50, 50)), entry(41 * DAY, "k", "m", (900, 0))];
    store.add_usage(&before).unwrap();
    let first = answer_to(&store, "a", 1, report(Measure::Budget, 0, 0, 300));
    assert_eq!((first.granted, first.free), (300, 600));
    let second = answer_to(&store, "a", 2, report(Measure::Budget, 300, 0, 0));
    assert_eq!((second.granted, second.free), (300, 600));
    let used = vec![entry(12 * DAY, "k", "m", (100, 100)), entry(39 * DAY, "k", "n", (100, 0))];
    store.take_usage(&rows("a", 1, used.clone())).unwrap();
    store.take_usage(&rows("a", 1, used)).unwrap();
    assert_eq!(
        answer_to(&store, "a", 3, report(Measure::Budget, 300, 0, 0)).free,
        600,
        "counted once"
    );
    let others = answer_to(&store, "b", 1, report(Measure::Budget, 0, 0, 900));
    assert_eq!((others.granted, others.short, others.idle), (600, true, 0));
}

#[test]
fn money_is_counted_by_what_rows_cost() {
    let store = store();
    let row = UsageEntry { cost: Some(Money(400)), ..entry(11 * DAY, "k", "m", (9_999, 0)) };
    answer_to(&store, "a", 1, report(Measure::Money, 0, 500, 0));
    store.take_usage(&rows("a", 1, vec![row])).unwrap();
    let answer = answer_to(&store, "a", 2, report(Measure::Money, 400, 0, 0));
    assert_eq!((answer.free, answer.settled), (600, 400));
}

#[test]
fn usage_that_is_forgotten_for_its_age_was_used_all_the_same() {
    let store = store();
    store.add_usage(&[entry(11 * DAY, "k", "m", (400, 0))]).unwrap();
    assert_eq!(store.forget_usage(12 * DAY, 9).unwrap(), 1);
    assert_eq!(answer_to(&store, "a", 1, report(Measure::Budget, 0, 0, 0)).free, 600);
}

#[test]
fn a_report_that_comes_after_a_later_one_is_refused() {
    let store = store();
    answer_to(&store, "a", 7, report(Measure::Concurrent, 0, 0, 5));
    for number in [7, 3] {
        let late = store.report("a", number, &[report(Measure::Concurrent, 0, 0, 0)]);
        assert!(late.unwrap_err().is_unavailable());
    }
    assert_eq!(answer_to(&store, "a", 8, report(Measure::Concurrent, 0, 5, 0)).granted, 5);
}

#[test]
fn what_a_silent_server_held_goes_back_by_the_clock_of_the_database() {
    let server = PostgresServer::shared();
    let url = database(server);
    let store = open(&url);
    for measure in [Measure::Concurrent, Measure::Budget, Measure::Requests] {
        answer_to(&store, measure.as_str(), 1, report(measure, 0, 100, 500));
        let short = answer_to(&store, "other", measure as u64 + 1, report(measure, 0, 0, 1_000));
        assert_eq!((short.short, short.idle), (true, 500), "{measure:?}");
    }
    server.sql(
        url.expose(),
        "UPDATE warren.servers SET seen = seen - interval '16 s' WHERE run <> 'other'",
    );
    let after = |number, measure| answer_to(&store, "other", number, report(measure, 0, 0, 1_000));
    assert_eq!(after(20, Measure::Concurrent).granted, 1_000);
    assert_eq!(after(21, Measure::Budget).granted, 1_000);
    let rate = after(22, Measure::Requests);
    assert!(rate.granted < 1_000 && rate.idle == 0, "it comes back with time alone: {rate:?}");
    let back = answer_to(&store, "budget", 2, report(Measure::Budget, 90, 10, 0));
    assert_eq!((back.granted, back.free), (90, 0), "it has lost what it held");
}

#[test]
fn a_server_that_leaves_holds_nothing_and_what_it_used_counts() {
    let store = store();
    answer_to(&store, "a", 1, report(Measure::Budget, 0, 0, 800));
    answer_to(&store, "a", 2, report(Measure::Budget, 300, 0, 0));
    store.leave("a").unwrap();
    let answers = store.report("b", 1, &[report(Measure::Budget, 0, 0, 800)]).unwrap();
    assert_eq!((answers.servers, answers.answers[0].granted), (1, 700));
    store.forget_pools(12 * DAY).unwrap();
    assert_eq!(
        answer_to(&store, "b", 2, report(Measure::Budget, 0, 700, 1)).free,
        0,
        "its rows come yet"
    );
    store.take_usage(&rows("a", 1, vec![entry(11 * DAY, "k", "m", (300, 0))])).unwrap();
    store.forget_pools(12 * DAY).unwrap();
    assert_eq!(answer_to(&store, "b", 3, report(Measure::Budget, 0, 0, 0)).free, 700);
}

#[test]
fn what_others_hold_idle_is_asked_for() {
    let url = database(PostgresServer::shared());
    let (one, other) = (open(&url), open(&url));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    answer_to(&one, "one", 1, report(Measure::Concurrent, 0, 0, 900));
    assert!(answer_to(&other, "other", 1, report(Measure::Concurrent, 0, 0, 500)).short);
    let recalled = async { tokio::time::timeout(Duration::from_secs(30), one.recalled()).await };
    assert_eq!(runtime.block_on(recalled).unwrap(), ["k".into()]);
    answer_to(&one, "one", 2, report(Measure::Concurrent, 0, 10, 0));
    let answer = answer_to(&other, "other", 2, report(Measure::Concurrent, 0, 0, 500));
    assert_eq!((answer.granted, answer.short), (500, false));
}

#[test]
fn tables_of_the_first_version_are_brought_up_to_date_with_what_was_used() {
    let server = PostgresServer::shared();
    let url = database(server);
    open(&url)
        .add_usage(&[entry(11 * DAY, "k", "m", (100, 50)), entry(12 * DAY, "k", "n", (5, 0))])
        .unwrap();
    let first = "DROP TABLE usage_keys, pools, slices, servers, conversation_items, conversations, responses; DROP FUNCTION note_usage CASCADE;
        DROP TRIGGER changed ON rooms; DROP TRIGGER deleted ON rooms; DELETE FROM revisions WHERE name = 'rooms';
        ALTER TABLE rooms DROP COLUMN home, DROP COLUMN home_start, DROP COLUMN epoch, DROP COLUMN changed;
        DROP TRIGGER changed ON keys; ALTER TABLE keys DROP COLUMN resume_answers; ALTER TABLE usage DROP COLUMN resumes;
        CREATE TRIGGER changed BEFORE INSERT OR UPDATE OF digest ON keys FOR EACH ROW EXECUTE FUNCTION note_change();
        UPDATE tables SET version = 1";
    server.sql(url.expose(), &format!("SET search_path TO warren; {first}"));
    assert_eq!(answer_to(&open(&url), "a", 1, report(Measure::Budget, 0, 0, 0)).free, 845);
}

#[test]
fn a_server_knows_after_a_restart_how_many_there_were_and_what_it_had_not_sent() {
    let mut server = PostgresServer::start();
    let (url, directory) = (database(&server), tempfile::tempdir().unwrap());
    let file = directory.path().join("shared.db");
    let shared = SharedStore::open(&url, &file).unwrap();
    store::KeyStore::load_keys(&shared).unwrap();
    assert_eq!(shared.known_servers().unwrap(), 1);
    open(&url).report("other", 1, &[]).unwrap();
    assert_eq!(shared.report(&[]).unwrap().servers, 2);
    server.kill();
    let row = UsageEntry { cost: Some(Money(7)), ..entry(11 * DAY + 5, "k", "m", (1, 2)) };
    shared.add_usage(&[row.clone(), row]).unwrap();
    drop(shared);
    let shared = SharedStore::open(&url, &file).unwrap();
    assert_eq!(shared.known_servers().unwrap(), 2);
    let sums = shared.unsent_sums().unwrap();
    let sum = (sums[0].day_ms, sums[0].tokens, sums[0].money());
    assert_eq!((sums.len(), sum), (1, (11 * DAY, 6, Money(14))));
}
