//! The ledger.

use base::{Endpoint, JobId, Money, UsageBy, UsageCounts};
use store::{UsageEntry, UsageGroup, UsageQuery, usage::MAX_GROUPS};

use proptest::prelude::*;

use super::{Store, every_store};

const DAY: u64 = 86_400_000;

pub(crate) fn entry(at_ms: u64, key: &str, model: &str, tokens: (u64, u64)) -> UsageEntry {
    UsageEntry {
        at_ms,
        job: JobId::from_random(at_ms.into()),
        key: key.into(),
        model: model.into(),
        served_model: Some("other".into()),
        provider: Some("gpu".into()),
        endpoint: Endpoint::Messages,
        outcome: "answered".into(),
        status: Some(200),
        prompt_tokens: Some(tokens.0),
        completion_tokens: Some(tokens.1),
        estimated: false,
        queue_ms: 1,
        first_byte_ms: Some(2),
        total_ms: 3,
        streaming: true,
        requeues: 0,
        cost: None,
        resumes: None,
    }
}

fn refused(at_ms: u64) -> UsageEntry {
    UsageEntry {
        provider: None,
        outcome: "queue_full".into(),
        status: None,
        prompt_tokens: None,
        completion_tokens: None,
        first_byte_ms: None,
        ..entry(at_ms, "b", "m", (0, 0))
    }
}

fn some_usage(store: &dyn Store) {
    let left =
        UsageEntry { outcome: "client_gone".into(), estimated: true, ..entry(3, "a", "n", (1, 1)) };
    let first = [entry(1, "a", "m", (10, 5)), refused(2), left];
    store.add_usage(&first).unwrap();
    let priced = UsageEntry { cost: Some(Money(7)), ..entry(DAY * 18_000, "b", "m", (100, 50)) };
    store.add_usage(&[priced]).unwrap();
}

fn by(by: &[UsageBy]) -> UsageQuery {
    UsageQuery { by: by.to_vec(), ..UsageQuery::default() }
}

fn named(groups: &[UsageGroup]) -> Vec<(String, u64, u64)> {
    let named =
        |group: &UsageGroup| (group.names.join(" "), group.sums.requests, group.sums.total_tokens);
    groups.iter().map(named).collect()
}

#[test]
fn usage_is_summed_up_by_what_is_asked_for() {
    every_store(|store| {
        some_usage(store);
        let found = |dimensions: &[UsageBy]| named(&store.usage(&by(dimensions)).unwrap().groups);
        let row = |name: &str, requests, tokens| (name.to_owned(), requests, tokens);
        assert_eq!(found(&[UsageBy::Key]), [row("b", 2, 150), row("a", 2, 17)]);
        assert_eq!(found(&[UsageBy::Model]), [row("m", 3, 165), row("n", 1, 2)]);
        assert_eq!(found(&[UsageBy::Provider]), [row("gpu", 3, 167), row("", 1, 0)]);
        assert_eq!(found(&[UsageBy::Api]), [row("/v1/messages", 4, 167)]);
        assert_eq!(found(&[UsageBy::Day]), [row("2019-04-14", 1, 150), row("1970-01-01", 3, 17)]);
        assert_eq!(
            found(&[UsageBy::Model, UsageBy::Key]),
            [row("m b", 2, 150), row("m a", 1, 15), row("n a", 1, 2)]
        );
    });
}

#[test]
fn totals_are_told_with_and_without_groups() {
    every_store(|store| {
        some_usage(store);
        let totals = UsageCounts {
            requests: 4,
            prompt_tokens: 111,
            completion_tokens: 56,
            total_tokens: 167,
            estimated: 1,
            errors: 1,
            cost: Money(7),
        };
        for dimensions in [&[][..], &[UsageBy::Key, UsageBy::Day]] {
            let answer = store.usage(&by(dimensions)).unwrap();
            assert_eq!((answer.totals, answer.truncated), (totals, false));
            assert_eq!(answer.groups.is_empty(), dimensions.is_empty());
        }
        let nothing = UsageQuery { since_ms: Some(u64::MAX), ..by(&[UsageBy::Key]) };
        assert_eq!(store.usage(&nothing).unwrap(), store::UsageAnswer::default());
    });
}

#[test]
fn usage_is_asked_of_a_time_a_key_a_model_or_a_provider() {
    every_store(|store| {
        some_usage(store);
        let requests = |query: UsageQuery| store.usage(&query).unwrap().totals.requests;
        let all = UsageQuery::default;
        assert_eq!(requests(UsageQuery { since_ms: Some(2), until_ms: Some(3), ..all() }), 1);
        assert_eq!(requests(UsageQuery { since_ms: Some(3), ..all() }), 2);
        assert_eq!(requests(UsageQuery { key: Some("a".to_owned()), ..all() }), 2);
        assert_eq!(requests(UsageQuery { model: Some("n".to_owned()), ..all() }), 1);
        assert_eq!(requests(UsageQuery { provider: Some("gpu".to_owned()), ..all() }), 3);
        let injected = "a' OR '1'='1".to_owned();
        assert_eq!(requests(UsageQuery { key: Some(injected), ..all() }), 0);
    });
}

#[test]
fn old_usage_is_forgotten_in_small_steps() {
    every_store(|store| {
        let entries: Vec<_> = (0..10).map(|at| entry(at, "a", "m", (1, 0))).collect();
        store.add_usage(&entries).unwrap();
        assert_eq!(store.forget_usage(7, 5).unwrap(), 5);
        assert_eq!(store.forget_usage(7, 5).unwrap(), 2);
        assert_eq!(store.forget_usage(7, 5).unwrap(), 0);
        assert_eq!(store.usage(&UsageQuery::default()).unwrap().totals.requests, 3);
    });
}

/// Row ids contain times: within a millisecond they must differ, even if the clock is set back.
#[test]
fn rows_of_one_millisecond_and_rows_that_come_late_are_told_apart() {
    every_store(|store| {
        let at = |times: &[u64]| -> Vec<_> {
            times.iter().map(|at| entry(*at, "a", "m", (1, 0))).collect()
        };
        for times in [&[7, 7, 9][..], &[7], &[9, 8, 7, 7], &[u64::MAX, u64::MAX], &[u64::MAX, 9]] {
            store.add_usage(&at(times)).unwrap();
        }
        let of = |since, until| {
            let (since_ms, until_ms) = (Some(since), Some(until));
            let query = UsageQuery { since_ms, until_ms, ..UsageQuery::default() };
            store.usage(&query).unwrap().totals.requests
        };
        assert_eq!((of(7, 8), of(8, 9), of(9, 10), of(0, 10)), (5, 1, 3, 9));
        assert_eq!(store.usage(&UsageQuery::default()).unwrap().totals.requests, 12);
        assert_eq!(store.forget_usage(8, 100).unwrap(), 5);
        assert_eq!(store.usage(&UsageQuery::default()).unwrap().totals.requests, 7);
    });
}

/// More rows than one statement inserts, and a remainder.
#[test]
fn every_row_of_a_batch_of_any_size_is_there() {
    every_store(|store| {
        let sizes = [1, 63, 64, 65, 200];
        for size in sizes {
            let entries: Vec<_> = (0..size).map(|at| entry(at, "a", "m", (at, 1))).collect();
            store.add_usage(&entries).unwrap();
        }
        let totals = store.usage(&UsageQuery::default()).unwrap().totals;
        let tokens: u64 = sizes.map(|size| size * (size - 1) / 2).iter().sum();
        let requests: u64 = sizes.iter().sum();
        assert_eq!((totals.requests, totals.completion_tokens), (requests, requests));
        assert_eq!(totals.prompt_tokens, tokens);
        let part = UsageQuery { since_ms: Some(64), ..UsageQuery::default() };
        assert_eq!(store.usage(&part).unwrap().totals.requests, 1 + 136);
    });
}

#[test]
fn more_groups_than_the_bound_are_left_out_but_counted() {
    every_store(|store| {
        let many = MAX_GROUPS as u64 + 1;
        let of = |at: u64| entry(at, &format!("k-{at}"), "m", (at, 0));
        store.add_usage(&(0..many).map(of).collect::<Vec<_>>()).unwrap();
        let answer = store.usage(&by(&[UsageBy::Key])).unwrap();
        assert_eq!((answer.groups.len(), answer.truncated), (MAX_GROUPS, true));
        assert_eq!(answer.totals.requests, many);
        assert!(answer.groups.iter().all(|group| group.names != ["k-0"]), "the least used");
    });
}

/// A history of four days, with jobs at midnight and just before it.
fn jobs() -> impl Strategy<Value = Vec<UsageEntry>> {
    let time = prop_oneof![0..4 * DAY, (0..4u64).prop_map(|day| day * DAY), Just(2 * DAY - 1)];
    let job = (time, 0..3u64, any::<bool>(), 0..100u64, any::<bool>(), any::<bool>());
    let entry = job.prop_map(|(at, key, provider, tokens, well, estimated)| UsageEntry {
        provider: provider.then(|| "gpu".into()),
        outcome: if well { "answered" } else { "worker_failed" }.into(),
        prompt_tokens: (tokens > 20).then_some(tokens),
        estimated,
        cost: (tokens > 40).then_some(Money(tokens)),
        ..entry(at, &format!("k-{key}"), "m", (0, tokens))
    });
    prop::collection::vec(entry, 0..60)
}

/// A query. Some of its spans begin or end at midnight.
fn questions() -> impl Strategy<Value = UsageQuery> {
    let time = || {
        let border = (0..5u64).prop_map(|day| day * DAY);
        prop::option::of(prop_oneof![0..4 * DAY, border, Just(u64::MAX)])
    };
    let by = prop::sample::subsequence(
        vec![UsageBy::Key, UsageBy::Provider, UsageBy::Api, UsageBy::Day],
        0..=4,
    );
    let key = prop::option::of((0..3u64).prop_map(|key| format!("k-{key}")));
    let provider = prop::option::of(Just("gpu".to_owned()));
    (time(), time(), key, provider, by).prop_map(|(since_ms, until_ms, key, provider, by)| {
        UsageQuery { since_ms, until_ms, key, provider, by, model: None }
    })
}

/// One for all histories, without rows: to make one takes half a second.
#[cfg(feature = "testing")]
fn emptied() -> &'static store::PostgresStore {
    use std::sync::OnceLock;
    static SHARED: OnceLock<store::PostgresStore> = OnceLock::new();
    let store = SHARED.get_or_init(super::shared::store);
    store::UsageStore::forget_usage(store, u64::MAX, usize::MAX).unwrap();
    store
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The database answers from the sums of whole days and from the rows beside them. After any
    /// adding and deleting, every query must give the same as a plain sum of rows.
    #[test]
    fn sums_by_the_day_are_those_of_the_rows(
        jobs in jobs(),
        questions in prop::collection::vec(questions(), 1..20),
        forgotten in prop::option::of(0..4 * DAY),
    ) {
        let plain = store::VolatileStore::default();
        let directory = tempfile::tempdir().unwrap();
        let database = store::SqliteStore::open(&directory.path().join("warren.db")).unwrap();
        #[cfg(feature = "testing")]
        let shared = emptied();
        let each: &[&dyn Store] = &[
            &plain,
            &database,
            #[cfg(feature = "testing")]
            shared,
        ];
        let (first, second) = jobs.split_at(jobs.len() / 2);
        each.iter().for_each(|store| store.add_usage(first).unwrap());
        if let Some(before) = forgotten {
            let forget = |store: &&dyn Store| store.forget_usage(before, usize::MAX).unwrap();
            let forgotten: Vec<_> = each.iter().map(forget).collect();
            prop_assert!(forgotten.iter().all(|number| *number == forgotten[0]), "{:?}", forgotten);
        }
        each.iter().for_each(|store| store.add_usage(second).unwrap());
        for question in questions {
            let answer_of = |store: &&dyn Store| {
                let mut answer = store.usage(&question).unwrap();
                // Groups with equal tokens have no fixed order.
                answer.groups.sort_by(|a, b| a.names.cmp(&b.names));
                answer
            };
            let first = answer_of(&each[0]);
            for other in &each[1..] {
                prop_assert_eq!(&first, &answer_of(other), "{:?}", question);
            }
        }
    }
}
