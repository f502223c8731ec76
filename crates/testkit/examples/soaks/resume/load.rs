//! The clients.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use testkit::{
    Client, Random,
    lab::{self, http},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::resume::{
    Settings,
    api::{APIS, Api, Reading},
    house::House,
};

/// A stream that has not ended by then has been forgotten.
const LOST_AFTER: Duration = Duration::from_secs(150);

/// The most texts that differ and are kept for the judge.
const MAX_KEPT: usize = 500;

pub(crate) type Report = lab::Report<Tally>;

#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) kills: u64,
    kinds: BTreeMap<&'static str, u64>,
    pub(crate) streams: u64,
    /// Streams that went on at another worker at least once.
    pub(crate) resumed: u64,
    pub(crate) equal: u64,
    pub(crate) differing: u64,
    pub(crate) wrong: u64,
    pub(crate) errors: u64,
    /// How long nothing came at the seams.
    pub(crate) pauses: Vec<Duration>,
    /// How many characters were there at the seams.
    seams: Vec<usize>,
    /// How many seams are within a word.
    within_words: u64,
    pub(crate) differ: Vec<Different>,
    /// The accounts of the first of them.
    pub(crate) differences: Vec<String>,
}

/// A text that is not the undisturbed one.
#[derive(Debug, Clone)]
pub(crate) struct Different {
    pub(crate) api: Api,
    pub(crate) prompt: usize,
    pub(crate) text: String,
    /// The characters and the pieces before each seam.
    pub(crate) seams: Vec<(usize, u64)>,
}

impl Tally {
    pub(crate) fn lost(&mut self, way: &'static str) {
        self.kills += 1;
        *self.kinds.entry(way).or_default() += 1;
    }

    pub(crate) fn kinds(&self) -> BTreeMap<&'static str, u64> {
        self.kinds.clone()
    }

    /// Notes where the seams of a text are.
    fn joined(&mut self, Reading { text, seams, .. }: &Reading) {
        let is_in_word = |at: usize| {
            let around = text.chars().skip(at.saturating_sub(1)).take(2);
            at > 0 && around.filter(|it| it.is_alphanumeric()).count() == 2
        };
        self.seams.extend(seams.iter().map(|(at, _)| at));
        self.within_words += seams.iter().filter(|(at, _)| is_in_word(*at)).count() as u64;
    }

    /// Where the seams are.
    pub(crate) fn places(&self) -> String {
        let mut seams = self.seams.clone();
        seams.sort_unstable();
        let at = |part: usize| seams.get((seams.len() * part / 4).min(seams.len().max(1) - 1));
        let [low, middle, high] = [1, 2, 3].map(|part| at(part).copied().unwrap_or_default());
        let within = self.within_words;
        format!("quartiles after {low}, {middle} and {high} characters, {within} within a word")
    }

    /// The pause that this share of all seams keeps within, in milliseconds.
    pub(crate) fn pause(&self, share: f64) -> u128 {
        let mut pauses = self.pauses.clone();
        pauses.sort_unstable();
        let at = (pauses.len() as f64 * share) as usize;
        pauses.get(at.min(pauses.len().saturating_sub(1))).map_or(0, Duration::as_millis)
    }
}

/// The requests, and the right answers to them.
pub(crate) struct Load {
    address: SocketAddr,
    prompts: Vec<String>,
    pub(crate) tokens: u64,
    /// The text of an undisturbed answer.
    undisturbed: HashMap<(Api, usize), String>,
}

impl Load {
    /// Asks for everything once, while nobody is lost.
    pub(crate) async fn prepare(settings: &Settings, house: &House) -> Self {
        let mut load = Self {
            address: house.address(),
            prompts: settings.prompts.as_deref().map_or_else(prompts, prompts_of),
            tokens: settings.tokens,
            undisturbed: HashMap::new(),
        };
        for api in APIS {
            for prompt in 0..load.prompts.len() {
                let whole = (prompt, "", load.tokens);
                let read = load.read(load.address, api, whole, |_| {}).await;
                let read = read.expect("it answers while nobody is lost");
                assert!(read.ended && read.error.is_none() && read.wrong.is_none(), "{read:?}");
                load.undisturbed.insert((api, prompt), read.text);
            }
        }
        load
    }

    pub(crate) fn undisturbed(&self, api: Api, prompt: usize) -> &str {
        &self.undisturbed[&(api, prompt)]
    }

    /// Asks until it is stopped.
    pub(crate) async fn client(
        self: Arc<Self>,
        mut random: Random,
        stop: CancellationToken,
        report: Report,
    ) {
        while !stop.is_cancelled() {
            let api = APIS[random.below(APIS.len() as u64) as usize];
            let prompt = random.below(self.prompts.len() as u64) as usize;
            let mut pauses = Vec::new();
            let whole = (prompt, "", self.tokens);
            let stream = self.read(self.address, api, whole, |pause| pauses.push(pause));
            let read = match timeout(LOST_AFTER, stream).await {
                Ok(read) => read,
                Err(_) => Err("it was forgotten".to_owned()),
            };
            report.check(|tally| self.note(tally, api, prompt, pauses, read));
        }
    }

    /// Reads a stream to its end; `paused` is told how long nothing came at each seam.
    pub(crate) async fn read(
        &self,
        from: SocketAddr,
        api: Api,
        (prompt, begun, tokens): (usize, &str, u64),
        mut paused: impl FnMut(Duration),
    ) -> Result<Reading, String> {
        let request = api.ask(&Client::new(from), &self.prompts[prompt], begun, tokens);
        let mut answer = http::send(from, &request).await.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            let status = answer.status;
            return Err(format!("{status}: {}", answer.text().await.0));
        }
        let (mut reading, mut last) = (Reading::of(api), Instant::now());
        while let Some(piece) = answer.piece().await.map_err(|error| error.to_string())? {
            let seams = reading.seams.len();
            let brings_text = reading.feed(&piece);
            if reading.seams.len() > seams {
                paused(last.elapsed());
            }
            if brings_text {
                last = Instant::now();
            }
        }
        Ok(reading)
    }

    /// Counts a stream; returns what was wrong with it.
    fn note(
        &self,
        tally: &mut Tally,
        api: Api,
        prompt: usize,
        pauses: Vec<Duration>,
        read: Result<Reading, String>,
    ) -> Option<String> {
        tally.streams += 1;
        let read = match read {
            Ok(Reading { error: Some(error), text, .. }) => Err(format!("{error}, after {text:?}")),
            Err(error) => Err(error),
            Ok(read) if !read.ended => Err(format!("it broke off after {:?}", read.text)),
            Ok(read) => Ok(read),
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                tally.errors += 1;
                return Some(format!("{api:?}: {error}"));
            }
        };
        tally.pauses.extend(pauses);
        tally.resumed += u64::from(!read.seams.is_empty());
        tally.joined(&read);
        if let Some(wrong) = read.wrong {
            tally.wrong += 1;
            return Some(format!("{api:?}: {wrong}"));
        }
        let is_equal = read.text == self.undisturbed(api, prompt);
        match (is_equal, read.seams.is_empty()) {
            (true, true) => {}
            (true, false) => tally.equal += 1,
            (false, _) if tally.differ.len() < MAX_KEPT => {
                let Reading { text, seams, .. } = read;
                tally.differ.push(Different { api, prompt, text, seams });
            }
            (false, _) => {
                tally.wrong += 1;
                return Some("too many texts differ".to_owned());
            }
        }
        None
    }
}

/// The lines of a file.
fn prompts_of(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("the file of prompts can be read");
    let prompts: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(!prompts.is_empty(), "the file of prompts has none");
    prompts
}

/// Prompts of several lengths.
fn prompts() -> Vec<String> {
    let words = "tell me of the river and of the people who call it home at night".split(' ');
    let all: Vec<&str> = words.collect();
    [3, 6, 15, 60, 240]
        .map(|length| all.iter().cycle().take(length).copied().collect::<Vec<_>>().join(" "))
        .to_vec()
}
