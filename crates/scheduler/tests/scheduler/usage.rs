//! The usage that is reported for a job.

use http::{HeaderMap, HeaderValue, StatusCode};
use scheduler::{
    Config, Head, Job, Meter, Usage,
    exchange::{ESTIMATED, USAGE_HEADER},
};

use crate::kit::{Kit, ok};

/// Reads this in every answer, and guesses that.
struct Fixed {
    read: Usage,
    guess: Usage,
}

impl Meter for Fixed {
    fn feed(&mut self, _: &[u8]) {}

    fn usage(&self) -> Usage {
        self.read
    }

    fn estimate(&self) -> Usage {
        self.guess
    }
}

fn tokens(prompt: u64, completion: u64) -> Usage {
    let (prompt_tokens, completion_tokens) = (Some(prompt), Some(completion));
    Usage { prompt_tokens, completion_tokens, ..Usage::default() }
}

fn estimated(usage: Usage) -> Usage {
    Usage { estimated: true, ..usage }
}

/// The account of a job whose answer has this head, in which this usage is read.
async fn account(head: Head, read: Usage, reported: Option<Usage>) -> Usage {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let meter = Box::new(Fixed { read, guess: tokens(50, 60) });
    let job = Job { meter, ..kit.job() };
    let mut answer = kit.scheduler.submit(job);
    let mut writer = provider.assigned().await.answer;
    writer.head(head).unwrap();
    reported.into_iter().for_each(|usage| writer.report(usage));
    writer.end();
    answer.head().await.unwrap();
    kit.last_ended().usage
}

#[tokio::test(start_paused = true)]
async fn usage_comes_from_the_answer_then_the_provider_then_an_estimate() {
    let none = Usage::default();
    let half = Usage { prompt_tokens: Some(1), ..none };
    assert_eq!(account(ok(), tokens(1, 2), Some(tokens(8, 9))).await, tokens(1, 2));
    assert_eq!(account(ok(), half, Some(tokens(8, 9))).await, tokens(1, 9));
    assert_eq!(account(ok(), half, None).await, estimated(tokens(1, 60)));
    assert_eq!(account(ok(), none, None).await, estimated(tokens(50, 60)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_guessed_of_an_answer_that_is_an_error() {
    let refused = Head { status: StatusCode::BAD_REQUEST, ..ok() };
    assert_eq!(account(refused, Usage::default(), None).await, Usage::default());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_can_only_guess_says_so_in_its_head() {
    let said = HeaderValue::from_static(ESTIMATED);
    let head = Head { headers: HeaderMap::from_iter([(USAGE_HEADER, said)]), ..ok() };
    assert_eq!(account(head, tokens(1, 2), None).await, estimated(tokens(1, 2)));
}
