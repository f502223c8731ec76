//! Clients of the machines.

use std::{sync::Arc, time::Duration};

use testkit::{Random, lab::http};
use tokio::time::{Instant, sleep, timeout};

use crate::mesh::{
    Settings,
    account::Report,
    judge::{Outcome, RequestEnd, SentRequest, judge},
    machine::Machine,
    peers::Mesh,
    plan::{self, HANGS, MACHINES, Model},
    script,
};

/// The share of requests whose client hangs up, and the longest that it reads before, in milliseconds.
const HANG_UPS: f64 = 0.1;
const READS: u64 = 300;

/// The longest that a client thinks between two requests, in milliseconds.
const THINKS: u64 = 600;

/// The least number of requests for each minute; a slow machine takes longer for them.
const REQUESTS_A_MINUTE: u64 = 1_000;

/// The requests of clients, and for how long they come.
pub(crate) struct Load {
    mesh: Arc<Mesh>,
    report: Report,
    until: Instant,
    /// The least number of requests.
    least: u64,
}

impl Load {
    /// For as long as the settings say.
    pub(crate) fn new(mesh: Arc<Mesh>, report: Report, settings: &Settings) -> Self {
        let until = Instant::now() + settings.time;
        Self { mesh, report, until, least: settings.time.as_secs() * REQUESTS_A_MINUTE / 60 }
    }

    fn goes_on(&self) -> bool {
        Instant::now() < self.until || self.mesh.asked() < self.least
    }
}

/// One client: request after request, to any machine that runs.
pub(crate) async fn client(load: Arc<Load>, mut random: Random) {
    while load.goes_on() {
        let machine = &load.mesh.machines[random.below(MACHINES as u64) as usize];
        if machine.state().up {
            let ask = choose(&load.mesh, machine.number, &mut random);
            let hangs_up = random.chance(HANG_UPS);
            let patience = hangs_up.then(|| Duration::from_millis(random.below(READS)));
            let begun = Instant::now();
            let fate = send(machine, ask, patience).await;
            load.report.check(|tally| tally.request(ask, fate, begun.elapsed()));
        }
        sleep(Duration::from_millis(random.below(THINKS))).await;
    }
}

fn choose(mesh: &Mesh, asked: usize, random: &mut Random) -> SentRequest {
    let model = match random.below(10) {
        0..4 => Model::All,
        4..6 => Model::Half,
        6 => Model::Only(random.below(MACHINES as u64) as usize),
        _ => Model::Only(one_of(&plan::peers(asked).collect::<Vec<_>>(), random)),
    };
    let routes = [None, Some("prefer-local"), Some("mesh"), Some("mesh"), Some("local-only")];
    SentRequest {
        nonce: mesh.nonce(asked),
        model,
        stream: random.chance(0.5),
        route: one_of(&routes, random),
    }
}

fn one_of<T: Copy>(some: &[T], random: &mut Random) -> T {
    some[random.below(some.len() as u64) as usize]
}

/// Asks a machine, and reads the answer to its end, or until `patience` runs out.
pub(crate) async fn send(
    machine: &Machine,
    ask: SentRequest,
    patience: Option<Duration>,
) -> RequestEnd {
    let before = machine.state();
    let body = script::request(ask.nonce, &ask.model.name(), ask.stream);
    let mut request = machine.client().post("/v1/chat/completions", &body);
    if let Some(route) = ask.route {
        request = request.header("x-warren-route", route);
    }
    let reading = async {
        match http::send(before.address, &request).await {
            Ok(answer) => {
                let status = answer.status;
                let (text, ended) = answer.text().await;
                Outcome::Answer(status, text, ended)
            }
            Err(error) => Outcome::Nothing(error),
        }
    };
    match (timeout(patience.unwrap_or(HANGS), reading).await, patience) {
        (Ok(outcome), _) => judge(ask, outcome, before, machine.state()),
        (Err(_), Some(_)) => RequestEnd::HungUp,
        (Err(_), None) => RequestEnd::Wrong(format!("{ask:?} hangs")),
    }
}
