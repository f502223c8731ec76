//! Requests that wait for more of a slice.

use std::sync::{Arc, atomic::Ordering};

use base::{JobId, KeyLimits};
use store::pools::{Answer, Answers, Report};

use super::super::{Desk, MOST_WAITING, SharedLimits};
use crate::{
    limits::{Limited, Limits},
    moment::Moment,
    prices::Charge,
};

fn shared(most: u32) -> (Desk, Arc<SharedLimits>) {
    let desk = Desk::new(1, Vec::new());
    let limits = KeyLimits { concurrent: Some(most), ..KeyLimits::default() };
    let shared = Arc::new(SharedLimits::new("k".into(), limits, &desk));
    (desk, shared)
}

fn job(number: u128) -> JobId {
    JobId::from_random(number)
}

/// The database gives what is needed, up to this.
fn give(desk: &Desk, reports: &[Report], most: u64) {
    let answer = |report: &Report| {
        let wanted = report.reserved + report.need;
        let granted = wanted.min(most);
        Answer {
            pool: report.pool.clone(),
            granted,
            settled: 0,
            free: most - granted,
            idle: 0,
            short: granted < wanted,
            next_ms: None,
        }
    };
    let answers = reports.iter().map(answer).collect();
    desk.answered(&Answers { answers, servers: 1 }, Moment::now());
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_answer_and_not_for_its_patience() {
    let (desk, limits) = shared(2);
    let began = tokio::time::Instant::now();
    let asking = {
        let limits = Arc::clone(&limits);
        tokio::spawn(async move { limits.admit(job(1), Charge::default(), Moment::now()).await })
    };
    desk.work().await;
    give(&desk, &desk.reports(Moment::now(), false).unwrap(), 2);
    asking.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_millis(), 0);
    limits.settle(job(1), Charge::default(), Moment::now());
}

#[tokio::test(start_paused = true)]
async fn what_is_used_up_is_refused_with_the_answer() {
    let (desk, limits) = shared(1);
    let asking = {
        let limits = Arc::clone(&limits);
        tokio::spawn(async move { limits.admit(job(2), Charge::default(), Moment::now()).await })
    };
    desk.work().await;
    give(&desk, &desk.reports(Moment::now(), false).unwrap(), 0);
    assert_eq!(asking.await.unwrap().unwrap_err().limited, Limited::Concurrent(1));
    let outcome = limits.admit(job(3), Charge::default(), Moment::now()).await;
    outcome.expect_err("nobody is asked again for a second");
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_it_takes_its_share_after_a_second() {
    let (desk, limits) = shared(1);
    let began = tokio::time::Instant::now();
    let reports = async {
        desk.work().await;
        desk.reports(Moment::now(), false).unwrap();
        desk.unanswered();
    };
    let (admitted, ()) =
        tokio::join!(limits.admit(job(1), Charge::default(), Moment::now()), reports);
    admitted.unwrap();
    assert_eq!(began.elapsed().as_millis(), 0, "the database is known to be away");
    let second = limits.admit(job(2), Charge::default(), Moment::now()).await;
    assert_eq!(second.unwrap_err().limited, Limited::Concurrent(1));
}

#[test]
fn nothing_is_told_while_there_is_nothing_to_tell() {
    let (desk, limits) = shared(2);
    assert_eq!(desk.reports(Moment::now(), false), None);
    assert_eq!(desk.reports(Moment::now(), true), Some(Vec::new()), "that it is there");
    limits.at_once(job(1), Charge::default(), Moment::now()).unwrap_err();
    assert_eq!(desk.reports(Moment::now(), false), None, "it holds nothing");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_bound_wait() {
    let (_desk, limits) = shared(1);
    let waiting: Vec<_> = (0..MOST_WAITING as u128)
        .map(|number| {
            let limits = Arc::clone(&limits);
            tokio::spawn(async move {
                limits.admit(job(number), Charge::default(), Moment::now()).await
            })
        })
        .collect();
    while limits.waiting.load(Ordering::Relaxed) < MOST_WAITING {
        tokio::task::yield_now().await;
    }
    let began = tokio::time::Instant::now();
    limits.admit(job(9_999), Charge::default(), Moment::now()).await.unwrap_err();
    assert_eq!(began.elapsed().as_millis(), 0);
    for one in waiting {
        one.await.unwrap().unwrap_err();
    }
    assert!(began.elapsed().as_millis() >= 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ran_while_its_key_became_unlimited_is_settled() {
    let desk = Desk::new(1, Vec::new());
    let one = KeyLimits { concurrent: Some(1), ..KeyLimits::default() };
    let admit = async |limits: Limits, number| {
        let asking = limits.admit(job(number), Charge::default(), Moment::now());
        let answering = async {
            for _ in 0..9 {
                desk.work().await;
                let reports = desk.reports(Moment::now(), false).unwrap_or_default();
                give(&desk, &reports, 1);
                tokio::task::yield_now().await;
            }
        };
        let admitted = tokio::select! {
            admitted = asking => admitted.is_ok(),
            () = answering => false,
        };
        (limits, admitted)
    };
    let (limits, admitted) = admit(Limits::shared(&"k".into(), one, &desk), 1).await;
    assert!(admitted);
    let unlimited = limits.changed(KeyLimits::default(), Moment::now());
    unlimited.settle(job(1), Charge::default(), Moment::now());
    let (_, admitted) = admit(unlimited.changed(one, Moment::now()), 2).await;
    assert!(admitted, "its place is free");
}
