//! A provider that is connected to another server: its assignments and its answers travel over a
//! lossy pipe. Nothing in the exchange or the dispatcher minds.

use std::{collections::HashMap, sync::Arc, time::Duration};

use base::JobId;
use bytes::Bytes;
use scheduler::{AnswerWriter, Assignment, CancelReason, Config, Event, Provider};
use testkit::{LossyEnd, LossySender, lossy_pair};
use tokio::{sync::mpsc, task::JoinSet};

use crate::kit::{Kit, ok};

/// An event for the far server.
#[derive(Debug, Clone)]
enum FarEvent {
    Serve(JobId, Bytes),
    Stop(JobId),
}

/// An event that comes back.
#[derive(Debug, Clone)]
enum Back {
    Head(JobId),
    Chunk(JobId, Bytes),
    End(JobId),
}

enum Note {
    Assigned(Assignment),
    Canceled(JobId),
}

struct Remote(mpsc::Sender<Note>);

impl Provider for Remote {
    fn name(&self) -> &str {
        "remote"
    }

    fn assign(&self, assignment: Assignment) {
        self.0.try_send(Note::Assigned(assignment)).ok();
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        self.0.try_send(Note::Canceled(job)).ok();
    }

    fn drain(&self, _: &str, _: Duration) {}
    fn retire(&self, _: bool) {}
    fn refresh(&self, _: &str) {}
}

/// The near end: notes of the scheduler become messages, messages become calls of writers.
async fn near(mut notes: mpsc::Receiver<Note>, mut pipe: LossyEnd<FarEvent, Back>) {
    let mut writers: HashMap<JobId, AnswerWriter> = HashMap::new();
    loop {
        tokio::select! {
            note = notes.recv() => match note {
                Some(Note::Assigned(assignment)) => {
                    let body = assignment.request.body.clone();
                    writers.insert(assignment.job, assignment.answer);
                    pipe.sender.send(FarEvent::Serve(assignment.job, body)).await.unwrap();
                }
                Some(Note::Canceled(job)) => {
                    if let Some(writer) = writers.remove(&job) {
                        writer.abandon();
                    }
                    pipe.sender.send(FarEvent::Stop(job)).await.unwrap();
                }
                None => return,
            },
            back = pipe.receiver.recv() => match back {
                Some(Back::Head(job)) => {
                    let _ = writers.get_mut(&job).map(|writer| writer.head(ok()));
                }
                Some(Back::Chunk(job, chunk)) => {
                    let _ = writers.get_mut(&job).map(|writer| writer.chunk(chunk));
                }
                Some(Back::End(job)) => {
                    if let Some(writer) = writers.remove(&job) {
                        writer.end();
                    }
                }
                None => return,
            },
        }
    }
}

/// The far end: each job repeats its body and counts to ten, until it is stopped, which is told.
async fn far(mut pipe: LossyEnd<Back, FarEvent>, stopped: mpsc::Sender<JobId>) {
    let mut running = HashMap::new();
    while let Some(message) = pipe.receiver.recv().await {
        match message {
            FarEvent::Serve(job, body) => {
                running.insert(job, tokio::spawn(count(job, body, pipe.sender.clone())));
            }
            FarEvent::Stop(job) => {
                if let Some(task) = running.remove(&job) {
                    task.abort();
                    stopped.send(job).await.unwrap();
                }
            }
        }
    }
}

async fn count(job: JobId, body: Bytes, pipe: LossySender<Back>) {
    pipe.send(Back::Head(job)).await.unwrap();
    pipe.send(Back::Chunk(job, body)).await.unwrap();
    for number in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        pipe.send(Back::Chunk(job, Bytes::from(format!("data: {number}\n\n")))).await.unwrap();
    }
    pipe.send(Back::End(job)).await.unwrap();
}

fn join_remote(kit: &mut Kit, seed: u64) -> (scheduler::Membership, mpsc::Receiver<JobId>) {
    let (notes, inbox) = mpsc::channel(256);
    let (stopped, stops) = mpsc::channel(256);
    let (here, there) = lossy_pair(seed, 0.3);
    tokio::spawn(near(inbox, here));
    tokio::spawn(far(there, stopped));
    (kit.join_with(8, Arc::new(Remote(notes))), stops)
}

#[tokio::test(start_paused = true)]
async fn its_answers_arrive_whole_and_in_order() {
    let mut kit = Kit::new(Config::default());
    let (_membership, _stops) = join_remote(&mut kit, 11);
    let mut readers = JoinSet::new();
    for _ in 0..40 {
        let mut answer = kit.submit();
        readers.spawn(async move {
            answer.head().await.unwrap();
            let mut text = Vec::new();
            while let Event::Chunk(chunk) = answer.next().await {
                text.extend_from_slice(&chunk);
            }
            String::from_utf8(text).unwrap()
        });
    }
    let whole: String = std::iter::once("{}".to_owned())
        .chain((0..10).map(|number| format!("data: {number}\n\n")))
        .collect();
    let answers = readers.join_all().await;
    assert_eq!(answers.len(), 40);
    assert!(answers.iter().all(|answer| *answer == whole));
    assert_eq!(kit.slots(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_the_job_at_the_far_end() {
    let mut kit = Kit::new(Config::default());
    let (_membership, mut stops) = join_remote(&mut kit, 12);
    let mut answer = kit.submit();
    answer.head().await.unwrap();
    let job = answer.job();
    drop(answer);
    assert_eq!(kit.slots(), (0, 0), "the slot is free at once");
    assert_eq!(stops.recv().await, Some(job));
}
