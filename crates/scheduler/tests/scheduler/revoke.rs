//! The jobs of a key that was revoked.

use dispatch::Ending;
use scheduler::{Answer, CancelReason, Config, Event, Job, Outcome, WriteError};

use crate::kit::{Kit, ok};

fn submit(kit: &mut Kit, key: &str) -> Answer {
    let job = Job { key: key.into(), ..kit.job() };
    kit.scheduler.submit(job)
}

#[tokio::test(start_paused = true)]
async fn each_ends_whether_it_waits_or_is_served_or_half_answered() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(2);
    let mut begun = submit(&mut kit, "leaked");
    let mut unbegun = submit(&mut kit, "leaked");
    let mut waiting = submit(&mut kit, "leaked");
    let other = submit(&mut kit, "other");
    let mut writer = provider.assigned().await.answer;
    writer.head(ok()).unwrap();
    let late = provider.assigned().await;
    begun.head().await.unwrap();

    kit.scheduler.revoke(&"leaked".into());

    assert!(
        matches!(begun.next().await, Event::Failed(failure) if failure.ending == Ending::Revoked)
    );
    for answer in [&mut unbegun, &mut waiting] {
        assert_eq!(answer.head().await.unwrap_err().ending, Ending::Revoked);
    }
    for job in [begun.job(), unbegun.job()] {
        assert_eq!(provider.canceled().await, (job, CancelReason::ClientDisconnect));
    }
    assert_eq!(provider.assigned().await.job, other.job(), "the slots are free, for others");
    assert_eq!(writer.chunk(bytes::Bytes::from_static(b"late")), Err(WriteError::Over));
    late.answer.fail("and this is not heard");
    let ended = kit.ended.lock().unwrap();
    assert_eq!(ended.len(), 3);
    let revoked = |outcome: &Outcome| matches!(outcome, Outcome::Failed(failure) if failure.ending == Ending::Revoked);
    assert!(
        ended.iter().all(|(facts, ended)| facts.key == "leaked".into() && revoked(&ended.outcome))
    );
}
