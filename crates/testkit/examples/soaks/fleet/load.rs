//! The clients: a request at each step of the clock, to any server, however long the others take.

use std::{io, sync::Arc, time::Duration};

use testkit::{
    Random,
    lab::{Crew, http, without_comments},
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::{
    fleet::{
        account::Report,
        bill::{Bill, Bills},
        house::{House, PATIENCE},
        judge::{Model, Outcome, RequestEnd, SERVERS, SentRequest},
    },
    tokens::{APIS, Api, Tokens},
};

/// The share of requests whose client hangs up, and the longest that it reads before, in milliseconds.
const HANG_UPS: f64 = 0.05;
const READS: u64 = 600;

/// How long a client looks for a server that takes a connection.
const LOOKS: Duration = Duration::from_secs(20);

/// Asks at this rate, and waits for all ends.
pub(crate) async fn run(
    house: &Arc<House>,
    bills: &Arc<Bills>,
    mut random: Random,
    report: &Report,
    rate: usize,
    until: Instant,
) {
    let mut clients = Crew::of("a client");
    let mut tick = interval(Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0;
    while Instant::now() < until {
        tick.tick().await;
        number += 1;
        let (house, bills) = (Arc::clone(house), Arc::clone(bills));
        clients.spawn(ask(house, bills, number, random.fork(), report.clone()));
    }
    clients.join(report).await;
}

/// One request, from its choice to its end.
async fn ask(
    house: Arc<House>,
    bills: Arc<Bills>,
    number: u64,
    mut random: Random,
    report: Report,
) {
    let mut sent = choose(number, &mut random);
    let patience = random.chance(HANG_UPS).then(|| Duration::from_millis(random.below(READS)));
    let begun = Instant::now();
    let reading = read(&house, &mut sent, &report);
    let longest = PATIENCE.longest() + LOOKS;
    let Ok(seen) = timeout(patience.unwrap_or(longest), reading).await else {
        let end = match patience {
            Some(_) => RequestEnd::HungUp,
            None => RequestEnd::Wrong(format!("{sent:?} was neither answered nor failed")),
        };
        return report.check(|counts| counts.request(end, begun.elapsed()));
    };
    let end = sent.judge(&seen.outcome, &house.faults.since(begun));
    if let Some(bill) = bill(sent, &seen, &end) {
        bills.add(bill);
    }
    report.check(|counts| counts.request(end, begun.elapsed()));
}

fn choose(number: u64, random: &mut Random) -> SentRequest {
    let api = APIS[random.below(APIS.len() as u64) as usize];
    let model = match random.chance(0.4) {
        true => Model::Everywhere,
        false => Model::At(random.below(SERVERS as u64) as usize),
    };
    let home = random.below(SERVERS as u64) as usize;
    SentRequest { number, api, stream: api != Api::Embeddings && random.chance(0.7), model, home }
}

/// The outcome that a client saw, and the id that it was given.
struct Seen {
    outcome: Outcome,
    job: Option<String>,
}

/// Asks a server, or the next one if that takes no connection, as a proxy in front of them does.
async fn read(house: &House, sent: &mut SentRequest, report: &Report) -> Seen {
    let until = Instant::now() + LOOKS;
    let text = format!("n={}", sent.number);
    let body = sent.api.body(&sent.model.name(), sent.stream, &text);
    loop {
        let address = house.servers[sent.home].address;
        let request = house.client(address).post(sent.api.path(), &body);
        match http::send(address, &request).await {
            Ok(answer) => return seen(answer).await,
            Err(error) if is_refused(&error) && Instant::now() < until => {
                report.tally(|counts| counts.moved += 1);
                sent.home = (sent.home + 1) % SERVERS;
                sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Seen { outcome: Outcome::Nothing(error.kind()), job: None },
        }
    }
}

/// Whether nobody took the connection, so that nothing was asked.
fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

async fn seen(answer: http::Answer) -> Seen {
    let (status, job) = (answer.status, answer.head.header("x-request-id").map(str::to_owned));
    let (text, ended) = answer.text().await;
    let outcome =
        Outcome::Answer { status, text: without_comments(&text), is_whole: ended.is_ok() };
    Seen { outcome, job }
}

/// The row that the ledger must have for a request whose answer had a head.
fn bill(sent: SentRequest, seen: &Seen, end: &RequestEnd) -> Option<Bill> {
    let Outcome::Answer { text, .. } = &seen.outcome else { return None };
    let job = seen.job.clone()?;
    let (home, ended) = (sent.home, Instant::now());
    let tokens = match end {
        RequestEnd::Answered { .. } => {
            let tokens = Tokens::of(sent.number);
            let is_embedding = sent.api == Api::Embeddings;
            Some((tokens.prompt, if is_embedding { 0 } else { tokens.completion }))
        }
        _ => None,
    };
    let words = sent.words(text).map_or(0, |words| words.count);
    Some(Bill { job, home, ended, tokens, words })
}
