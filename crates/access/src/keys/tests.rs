//! Finding, changing, expiring and storing keys.

use std::time::Duration;

use base::{Budget, Endpoint, KeyLimits};
use store::UsageEntry;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn new(name: &str) -> NewKey {
    NewKey { name: name.to_owned(), scopes: vec![KeyScope::Inference], ..NewKey::default() }
}

fn opened() -> (Arc<VolatileStore>, Keys, Moment) {
    let (store, now) = (Arc::new(VolatileStore::default()), Moment::now());
    let keys = Keys::open(Arc::<VolatileStore>::clone(&store), now).unwrap();
    (store, keys, now)
}

fn reopened(store: &Arc<VolatileStore>, now: Moment) -> Keys {
    Keys::open(Arc::<VolatileStore>::clone(store), now).unwrap()
}

fn present(keys: &Keys, text: &Secret, now: Moment) -> Result<Option<KeyId>, Denied> {
    let found = keys.present(text.expose(), KeyScope::Inference, now);
    found.map(|key| key.map(|key| key.id().clone()))
}

#[test]
fn a_key_is_known_by_its_text_also_after_a_restart() {
    let (store, keys, now) = opened();
    let (record, text) = keys.create(new("a"), now).unwrap();
    assert!(text.expose().starts_with(&record.prefix) && record.prefix.len() == 11);
    for keys in [keys, reopened(&store, now)] {
        assert_eq!(present(&keys, &text, now), Ok(Some(record.id.clone())));
        assert_eq!(present(&keys, &"wk_other".into(), now), Ok(None));
        let metrics = keys.present(text.expose(), KeyScope::Metrics, now);
        assert_eq!(metrics.unwrap_err(), Denied::Scope(KeyScope::Metrics));
    }
    let stored = format!("{:?}", store.load_keys().unwrap());
    assert!(!stored.contains(text.expose()), "{stored}");
}

#[test]
fn keys_work_while_the_database_does_not() {
    let (store, keys, now) = opened();
    let (record, text) = keys.create(new("a"), now).unwrap();
    store.fail_writes(true);
    assert_eq!(present(&keys, &text, now), Ok(Some(record.id.clone())));
    assert!(matches!(keys.create(new("b"), now), Err(KeyError::Store(_))));
    assert!(matches!(keys.rotate(&record.id), Err(KeyError::Store(_))));
    assert_eq!(present(&keys, &text, now), Ok(Some(record.id.clone())), "not rotated by half");
    assert!(matches!(keys.revoke(&record.id, now), Err(KeyError::NotWritten(_))));
    assert_eq!(present(&keys, &text, now), Err(Denied::KeyRevoked), "in any case");
    store.fail_writes(false);
    keys.revoke(&record.id, now).unwrap();
    assert_eq!(present(&reopened(&store, now), &text, now), Err(Denied::KeyRevoked));
}

#[test]
fn a_rotated_key_has_another_text_and_the_same_limits() {
    let (store, keys, now) = opened();
    let limits = KeyLimits { concurrent: Some(1), ..KeyLimits::default() };
    let (record, old) = keys.create(NewKey { limits, ..new("a") }, now).unwrap();
    let held = keys.get(&record.id).unwrap();
    held.reserve(JobId::from_random(1), 1, now).unwrap();
    let (rotated, text) = keys.rotate(&record.id).unwrap();
    assert_eq!((&rotated.id, &rotated.name), (&record.id, &record.name));
    for keys in [&keys, &reopened(&store, now)] {
        assert_eq!(present(keys, &old, now), Ok(None));
        assert_eq!(present(keys, &text, now), Ok(Some(record.id.clone())));
    }
    let key = keys.get(&record.id).unwrap();
    assert!(key.reserve(JobId::from_random(2), 1, now).is_err(), "the first job still runs");
    keys.settle(&record.id, JobId::from_random(1), 5, now);
    key.reserve(JobId::from_random(2), 1, now).unwrap();
    keys.revoke(&record.id, now).unwrap();
    assert!(matches!(keys.rotate(&record.id), Err(KeyError::Revoked(_))));
}

#[tokio::test]
async fn connections_end_when_their_key_expires() {
    let (store, keys, now) = opened();
    let expires = Some(now.seconds() + 3_600);
    let (record, text) = keys.create(NewKey { expires, ..new("a") }, now).unwrap();
    let key = keys.get(&record.id).unwrap();
    assert_eq!(keys.end_expired(now), []);
    let later = now.after(HOUR);
    assert_eq!(present(&keys, &text, later), Err(Denied::KeyExpired));
    assert_eq!(keys.end_expired(later), [record.id]);
    key.ended().await;
    assert_eq!(keys.end_expired(later), [], "told once");
    assert_eq!(reopened(&store, later).end_expired(later), [], "nor again after a restart");
}

#[test]
fn the_last_use_is_written_in_batches() {
    let (store, keys, now) = opened();
    let (_, text) = keys.create(new("a"), now).unwrap();
    let later = now.after(HOUR);
    present(&keys, &text, later).unwrap();
    let used = || store.load_keys().unwrap()[0].last_used;
    assert_eq!((used(), keys.list()[0].last_used), (None, Some(later.seconds())));
    store.fail_writes(true);
    assert!(keys.save_last_used().is_err());
    store.fail_writes(false);
    keys.save_last_used().unwrap();
    assert_eq!(used(), Some(later.seconds()));
}

#[test]
fn in_a_room_only_its_own_keys_count() {
    let (_, keys, now) = opened();
    let room = |id: &str| NewKey { room: Some(id.into()), ..new("a") };
    let (record, own) = keys.create(room("one"), now).unwrap();
    let (_, others) = keys.create(room("two"), now).unwrap();
    let (_, servers) = keys.create(new("b"), now).unwrap();
    let present = |text: &Secret| {
        let key = keys.present_in(&"one".into(), text.expose(), KeyScope::Inference, now)?;
        Ok::<_, Denied>(key.map(|key| key.id().clone()))
    };
    assert_eq!(present(&own), Ok(Some(record.id.clone())));
    for text in [&others, &servers, &"a password".into()] {
        assert_eq!(present(text), Ok(None));
    }
    keys.revoke(&record.id, now).unwrap();
    assert_eq!(present(&own), Err(Denied::KeyRevoked));
}

#[test]
fn models_are_allowed_by_name_or_by_beginning() {
    let (_, keys, now) = opened();
    let models = vec!["qwen3-8b".to_owned(), "llama3*".to_owned()];
    let (record, _) = keys.create(NewKey { models, ..new("a") }, now).unwrap();
    let key = keys.get(&record.id).unwrap();
    assert!(key.allows("qwen3-8b") && key.allows("llama3") && key.allows("llama3.2:3b"));
    assert!(key.allows("qwen3-8b:latest") && !key.allows("qwen3-8b:4b"), "one model, two names");
    assert!(!key.allows("qwen3-8b-x") && !key.allows("Llama3") && !key.allows(""));
    let (record, _) = keys.create(new("b"), now).unwrap();
    assert!(keys.get(&record.id).unwrap().allows("anything"));
}

#[test]
fn invalid_keys_are_refused_with_the_reason() {
    let (_, keys, now) = opened();
    let models = |model: &str| NewKey { models: vec![model.to_owned()], ..new("a") };
    let limits = KeyLimits { tpm: Some(0), ..KeyLimits::default() };
    let cases = [
        (new(" "), "name"),
        (new(&"x".repeat(129)), "name"),
        (new("a\nb"), "name"),
        (NewKey { scopes: Vec::new(), ..new("a") }, "scope"),
        (
            NewKey {
                scopes: vec![KeyScope::Inference, KeyScope::Admin],
                room: Some("r".into()),
                ..new("a")
            },
            "bound to a room",
        ),
        (models("a*b"), "a*b"),
        (models(""), "model"),
        (NewKey { limits, ..new("a") }, "tpm"),
        (NewKey { expires: Some(now.seconds()), ..new("a") }, "past"),
    ];
    for (new, named) in cases {
        let error = keys.create(new, now).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
    assert_eq!(keys.list(), []);
}

#[test]
fn over_the_bound_the_first_revoked_is_forgotten() {
    let (_, keys, now) = opened();
    let made: Vec<KeyId> =
        (0..MAX_KEYS).map(|_| keys.create(new("a"), now).unwrap().0.id).collect();
    assert!(matches!(keys.create(new("b"), now), Err(KeyError::TooMany)));
    keys.revoke(&made[7], now).unwrap();
    keys.revoke(&made[3], now.after(HOUR)).unwrap();
    keys.create(new("b"), now).unwrap();
    assert!(keys.get(&made[7]).is_none() && keys.get(&made[3]).is_some());
    assert_eq!(keys.list().len(), MAX_KEYS);
}

#[test]
fn a_ready_made_key_works_and_is_not_administered() {
    let (_, keys, now) = opened();
    keys.add_ready_made("client-token".into(), &"secret".into(), &[KeyScope::Inference], now);
    let id = KeyId::from("client-token");
    assert_eq!(present(&keys, &"secret".into(), now), Ok(Some(id.clone())));
    assert!(keys.present("secret", KeyScope::Worker, now).unwrap().is_none(), "it is one thing");
    assert_eq!(keys.list(), []);
    assert!(matches!(keys.revoke(&id, now), Err(KeyError::NotFound(_))));
    keys.save_last_used().unwrap();
}

#[test]
fn a_key_for_a_model_is_for_nothing_else() {
    let (_, keys, now) = opened();
    keys.add_for_model("session:1".into(), &"secret".into(), "tiny", now);
    let key = keys.present("secret", KeyScope::Inference, now).unwrap().unwrap();
    assert!(key.allows("tiny") && !key.allows("tiny-2") && !key.allows("big"));
    assert!(keys.present("secret", KeyScope::Admin, now).unwrap().is_none());
}

#[test]
fn removing_a_ready_made_key_ends_it_and_spares_other_keys() {
    let (_, keys, now) = opened();
    let id = KeyId::from("session:1");
    keys.add_ready_made(id.clone(), &"secret".into(), &[KeyScope::Inference], now);
    let used = keys.present("secret", KeyScope::Inference, now).unwrap().unwrap();
    keys.remove_ready_made(&id);
    assert!(!used.end(), "what goes on with it has ended");
    assert_eq!(present(&keys, &"secret".into(), now), Ok(None));
    keys.remove_ready_made(&id);
    let (made, _) = keys.create(new("a"), now).unwrap();
    keys.remove_ready_made(&made.id);
    assert!(keys.get(&made.id).is_some());
}

#[test]
fn budgets_go_on_after_a_restart() {
    let (store, keys, now) = opened();
    let budget =
        |per| KeyLimits { budget: Some(Budget { tokens: 100, per }), ..KeyLimits::default() };
    let day = NewKey { limits: budget(Period::Day), ..new("day") };
    let (day, _) = keys.create(day, now).unwrap();
    let month = NewKey { limits: budget(Period::Month), ..new("month") };
    let (month, _) = keys.create(month, now).unwrap();
    let entry = |key: &KeyId, at_ms| UsageEntry {
        at_ms,
        job: JobId::from_random(1),
        key: key.clone(),
        model: "m".into(),
        served_model: None,
        provider: None,
        endpoint: Endpoint::ChatCompletions,
        outcome: "answered".into(),
        status: Some(200),
        prompt_tokens: Some(30),
        completion_tokens: Some(40),
        estimated: false,
        queue_ms: 0,
        first_byte_ms: None,
        total_ms: 0,
        streaming: false,
        requeues: 0,
        cost: None,
        resumes: None,
    };
    let long_ago = now.wall_ms - 32 * 86_400_000;
    let rows =
        [entry(&day.id, now.wall_ms), entry(&day.id, long_ago), entry(&month.id, now.wall_ms)];
    store.add_usage(&rows).unwrap();
    let keys = reopened(&store, now);
    keys.restore_budgets(&*store, now).unwrap();
    for id in [&day.id, &month.id] {
        let key = keys.get(id).unwrap();
        let standing = key.reserve(JobId::from_random(2), 10, now).unwrap();
        assert_eq!(standing.tokens.map(|gauge| gauge.remaining), Some(20));
    }
}
