//! Two daemons of a cluster, with lines in memory: teams on one, outposts on the other.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{ServerMessage, SessionId, SessionInfo, TeamId};
use tokio::{sync::mpsc, task::JoinHandle};
use workspace::Refusal;

use super::rig::Rig;
use crate::{
    Line, Members, TeamRequests,
    outposts::message::{FromOutpost, ToOutpost, read, write},
    queue::{SessionNotice, ask},
};

/// The most texts on their way.
const LINE: usize = 256;

/// The fate of texts that are sent over a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Fine,
    /// The far end never gets the owner's texts.
    Silent,
    /// The far end does not know what teams are.
    Strange,
    Away,
    /// The member has left the cluster.
    Left,
}

/// The other member, as one end sees it.
struct Link {
    weather: Mutex<Weather>,
    /// Serves lines: the other daemon.
    far: Mutex<Option<TeamRequests>>,
    own_name: &'static str,
    serving: Mutex<Vec<JoinHandle<()>>>,
    /// The texts that the other end has sent over all lines.
    heard: Arc<Mutex<Vec<String>>>,
    /// How often it was asked whether a member has left.
    asked: AtomicUsize,
}

struct End {
    sender: mpsc::Sender<String>,
    receiver: mpsc::Receiver<String>,
    heard: Option<Arc<Mutex<Vec<String>>>>,
}

impl Line for End {
    fn send(&self, text: String) {
        if let Some(heard) = &self.heard {
            heard.lock().unwrap().push(text.clone());
        }
        let _ended = self.sender.try_send(text);
    }

    fn next(&mut self) -> BoxFuture<'_, Result<String, String>> {
        async { self.receiver.recv().await.ok_or_else(|| "it was cut".to_owned()) }.boxed()
    }
}

impl Link {
    fn new(own_name: &'static str) -> Arc<Self> {
        let (weather, far) = (Mutex::new(Weather::Fine), Mutex::default());
        let (serving, heard, asked) = (Mutex::default(), Arc::default(), AtomicUsize::new(0));
        Arc::new(Self { weather, far, own_name, serving, heard, asked })
    }

    fn is(&self, weather: Weather) {
        *self.weather.lock().unwrap() = weather;
        self.cut();
    }

    fn cut(&self) {
        self.serving.lock().unwrap().drain(..).for_each(|serving| serving.abort());
    }

    fn weather(&self) -> Weather {
        *self.weather.lock().unwrap()
    }

    /// The messages of this kind that the other end has sent.
    fn heard(&self, wished: impl Fn(&FromOutpost) -> bool) -> usize {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|text| read(text).is_ok_and(|message| wished(&message))).count()
    }
}

impl Members for Link {
    fn find(&self, name: &str) -> Result<Option<String>, Refusal> {
        Ok((name != self.own_name).then(|| name.to_owned()))
    }

    fn name_of(&self, node: &str) -> String {
        node.to_uppercase()
    }

    fn is_reachable(&self, _: &str) -> bool {
        !matches!(self.weather(), Weather::Away | Weather::Left)
    }

    fn has_left<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        async { self.weather() == Weather::Left }.boxed()
    }

    fn open(&self, _: &str) -> Box<dyn Line> {
        let (to_far, from_near) = mpsc::channel(LINE);
        let (to_near, from_far) = mpsc::channel(LINE);
        let far = self.far.lock().unwrap().clone().unwrap();
        let own_name = self.own_name;
        let end =
            End { sender: to_near, receiver: from_near, heard: Some(Arc::clone(&self.heard)) };
        let weather = self.weather();
        let serving = tokio::spawn(async move {
            match weather {
                Weather::Silent => std::future::pending::<()>().await,
                Weather::Strange => {
                    end.send(r#"{"type":"error","message":"unknown"}"#.to_owned());
                    std::future::pending::<()>().await;
                }
                _ => far.serve(own_name, Box::new(end)).await,
            }
        });
        self.serving.lock().unwrap().push(serving);
        Box::new(End { sender: to_far, receiver: from_far, heard: None })
    }

    fn session(&self, _: SessionId) -> Option<SessionInfo> {
        None
    }
}

/// Two daemons. Teams are on `near`, which sees `far` through the link.
struct Two {
    near: Rig,
    far: Rig,
    link: Arc<Link>,
    back: Arc<Link>,
    team: TeamId,
}

impl Two {
    async fn new() -> Self {
        let (near, far) = (Rig::start().await, Rig::start().await);
        let team = near.create().await.id;
        let (link, back) = (Link::new("near"), Link::new("far"));
        let two = Self { near, far, link, back, team };
        two.join().await;
        two
    }

    async fn join(&self) {
        *self.link.far.lock().unwrap() = Some(self.far.requests());
        *self.back.far.lock().unwrap() = Some(self.near.requests());
        self.near.outposts.join(Arc::<Link>::clone(&self.link) as Arc<dyn Members>).await;
        self.far.outposts.join(Arc::<Link>::clone(&self.back) as Arc<dyn Members>).await;
    }

    async fn spawn(&self) -> Result<SessionId, Refusal> {
        let spawn = format!(
            r#"{{"type":"spawn_worker","team_id":"{}","name":"ann","node_id":"far"}}"#,
            self.team
        );
        match self.near.say(&spawn).await? {
            ServerMessage::WorkerSpawned(made) => Ok(made.worker_session.id),
            other => panic!("{other:?}"),
        }
    }

    fn leader(&self) -> SessionId {
        let sessions = self.near.sessions.lock();
        *sessions.all.keys().next().unwrap()
    }

    /// The newest result of a worker, as the team's owner knows it.
    async fn result(&self, worker: SessionId) -> (bool, String) {
        let wait = format!(
            r#""team_id":"{}","for_session_ids":["{worker}"],"timeout_ms":600000"#,
            self.team
        );
        let waited = self.near.wait(&wait).await;
        (waited.results[0].success, waited.results[0].result.clone())
    }

    async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..20_000 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never came: {what}");
    }

    async fn is_given(&self, worker: SessionId) {
        Self::until("a prompt", async || !self.far.given(worker).is_empty()).await;
    }

    /// The team counts the worker among those that have ended.
    async fn has_lost(&self, worker: SessionId) {
        let lost = async || {
            let relayed = self.near.relay(self.team, self.leader(), Some(worker), "m").await;
            relayed.is_err_and(|refusal| refusal.to_string().contains("takes part"))
        };
        Self::until("the end of a worker", lost).await;
    }

    /// A turn that a client of the worker's machine asked for.
    async fn turn_of_its_own(&self, worker: SessionId, turn: u64) {
        let (session, at) = (worker.uuid(), 0);
        self.far.queue.tell(SessionNotice::Started { session, turn, at });
        self.far.queue.tell(SessionNotice::ended(worker, turn, true, None, at));
        self.far.settle().await;
    }

    async fn turn(&self, worker: SessionId, words: &str) {
        self.is_given(worker).await;
        self.far.begin(worker).await;
        self.far.end(worker, true, words).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_given_once_however_often_the_line_is_cut() {
    let two = Two::new().await;
    let worker = two.spawn().await.unwrap();
    for number in 0..5 {
        two.link.cut();
        two.near.relay(two.team, two.leader(), Some(worker), &format!("m{number}")).await.unwrap();
        two.is_given(worker).await;
        two.link.cut();
        assert_eq!(two.far.given(worker).len(), 1);
        two.turn(worker, &format!("r{number}")).await;
        two.link.cut();
        assert_eq!(two.result(worker).await, (true, format!("r{number}")));
    }
}

#[tokio::test(start_paused = true)]
async fn reports_survive_the_death_of_both_daemons() {
    let mut two = Two::new().await;
    let worker = two.spawn().await.unwrap();
    two.near.relay(two.team, two.leader(), Some(worker), "m").await.unwrap();
    two.is_given(worker).await;
    // The owner is away while the turn begins and ends.
    two.link.is(Weather::Away);
    two.turn(worker, "kept").await;
    two.far = two.far.restart().await;
    two.near = two.near.restart().await;
    two.link.is(Weather::Fine);
    two.join().await;
    assert_eq!(two.result(worker).await, (true, "kept".to_owned()));
    assert_eq!(two.far.given(worker).len(), 0, "the message had begun its turn");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ends_with_its_own_daemon_has_failed_and_not_with_the_owners() {
    let mut two = Two::new().await;
    let worker = two.spawn().await.unwrap();
    two.near.relay(two.team, two.leader(), Some(worker), "m").await.unwrap();
    two.is_given(worker).await;
    two.far.begin(worker).await;
    two.near = two.near.restart().await;
    two.join().await;
    let wait = format!(r#""team_id":"{}","timeout_ms":50"#, two.team);
    assert!(two.near.wait(&wait).await.timed_out, "it goes on");
    two.far = two.far.restart().await;
    two.link.cut();
    two.join().await;
    let words = "the daemon stopped before this was finished".to_owned();
    assert_eq!(two.result(worker).await, (false, words));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_made_once_when_the_line_is_cut_meanwhile_and_refused_after_a_minute() {
    let two = Two::new().await;
    two.link.is(Weather::Silent);
    let (made, ()) = tokio::join!(two.spawn(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        two.link.is(Weather::Fine);
    });
    let made = made.unwrap();
    let all = |two: &Two| two.far.sessions.lock().all.keys().copied().collect::<Vec<_>>();
    assert_eq!(all(&two), [made]);
    two.link.is(Weather::Silent);
    let words = two.spawn().await.unwrap_err().to_string();
    assert_eq!(words, "FAR: it did not answer within 60s");
    assert_eq!(all(&two), [made]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_takes_long_is_made_once_however_often_the_line_is_cut() {
    let two = Two::new().await;
    two.far.sessions.lock().creation = Duration::from_secs(20);
    let (made, ()) = tokio::join!(two.spawn(), async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            two.link.cut();
        }
    });
    let made = made.unwrap();
    let all: Vec<_> = two.far.sessions.lock().all.keys().copied().collect();
    assert_eq!(all, [made]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_took_too_long_does_not_stay() {
    let two = Two::new().await;
    two.far.sessions.lock().creation = Duration::from_secs(90);
    let words = two.spawn().await.unwrap_err().to_string();
    assert_eq!(words, "FAR: it did not answer within 60s");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(two.far.sessions.lock().all.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_member_that_has_left_is_asked_for_rarely() {
    let two = Two::new().await;
    let worker = two.spawn().await.unwrap();
    two.link.is(Weather::Left);
    two.has_lost(worker).await;
    let before = two.link.asked.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(300)).await;
    let asked = two.link.asked.load(Ordering::Relaxed) - before;
    assert!(asked <= 11, "{asked}");
    // Once it is back, a worker is made there at once.
    two.link.is(Weather::Fine);
    two.spawn().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_refused_on_a_machine_that_is_away_or_of_another_version() {
    let two = Two::new().await;
    two.link.is(Weather::Away);
    let words = two.spawn().await.unwrap_err().to_string();
    assert!(words.starts_with("FAR cannot be reached"), "{words}");
    two.link.is(Weather::Strange);
    let words = two.spawn().await.unwrap_err().to_string();
    assert!(words.contains("is its Warren of another version?"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn what_the_other_machine_refuses_is_said_with_its_name_and_leaves_nothing() {
    let two = Two::new().await;
    two.far.sessions.lock().refuses = true;
    let words = two.spawn().await.unwrap_err().to_string();
    assert_eq!(words, "FAR: no more sessions");
    let seats = ask(&two.far.queue, |core, _| (Ok(core.outpost.seats().count()), Vec::new()));
    assert_eq!(seats.await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_has_forgotten_its_sessions_is_called_and_they_end() {
    let mut two = Two::new().await;
    let worker = two.spawn().await.unwrap();
    two.link.is(Weather::Away);
    two.near.say(&format!(r#"{{"type":"delete_team","team_id":"{}"}}"#, two.team)).await.unwrap();
    two.near = two.near.restart().await;
    two.link.is(Weather::Fine);
    two.join().await;
    let gone = async || !two.far.sessions.lock().all.contains_key(&worker);
    Two::until("the end of its session", gone).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_its_machine_does_not_know_or_whose_machine_has_left_is_gone() {
    let mut two = Two::new().await;
    let (lost, other) = (two.spawn().await.unwrap(), two.spawn().await.unwrap());
    // The far machine's disk is an old one.
    two.far = Rig::start().await;
    two.link.cut();
    two.join().await;
    for worker in [lost, other] {
        two.has_lost(worker).await;
    }
    let third = two.spawn().await.unwrap();
    two.link.is(Weather::Left);
    two.has_lost(third).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_acknowledges_nothing_is_sent_few_reports() {
    let two = Two::new().await;
    let worker = two.spawn().await.unwrap();
    two.link.is(Weather::Away);
    for turn in 1..=30 {
        two.turn_of_its_own(worker, turn).await;
    }
    // An owner that only reads.
    let (to_far, from_near) = mpsc::channel(LINE);
    let (to_near, mut from_far) = mpsc::channel(LINE);
    let end =
        End { sender: to_near, receiver: from_near, heard: Some(Arc::clone(&two.link.heard)) };
    let requests = two.far.requests();
    let serving = tokio::spawn(async move { requests.serve("near", Box::new(end)).await });
    let roll = ToOutpost::Roll { sessions: vec![worker.uuid()], is_complete: true };
    to_far.send(write(&roll)).await.unwrap();
    from_far.recv().await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let reports = two.link.heard(|message| matches!(message, FromOutpost::Report { .. }));
    assert_eq!(reports, 16);
    serving.abort();
}
