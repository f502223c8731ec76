//! One server: the machines of the fleet, a dispatcher, and what joins them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, RoomId, Scope};
use bytes::Bytes;
use dispatch::{
    Affinity, BlockedOn, Config, Dispatcher, Distance, Ending, JobSpec, LeastLoaded, LeaveReason,
    Offer, Route, Verdict,
};
use fleet::{
    Borrowing, Lending, Members, Message, RoomHomes, ServerId, ServerName, Stream, StreamId,
    borrowing, lending, members, room_homes,
    room_homes::{Epoch, Home},
    stream::{EndedStreams, Reason},
};

use crate::{
    exchange::{Exchange, Request, Side},
    net::{Event, Facts, Net, Outcome},
};

/// How long own jobs may wait for slots that are lent, where nothing goes wrong: a slot is asked back at the
/// next look, and comes back when its job ends.
pub(crate) const MOST_SHORT: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) node: usize,
    pub(crate) id: ServerId,
    /// Its clock is so far ahead: no two servers' clocks are compared.
    shift: Duration,
    pub(crate) members: Members<Facts>,
    pub(crate) lending: Lending,
    pub(crate) borrowing: Borrowing,
    pub(crate) homes: RoomHomes,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) exchanges: BTreeMap<StreamId, Exchange>,
    pub(crate) ended: EndedStreams,
    /// Its own provider.
    pub(crate) worker: Facts,
    /// The fellows' providers.
    pub(crate) borrowed: BTreeMap<ProviderId, ServerId>,
    wanted: BTreeMap<ProviderId, (u32, u32)>,
    /// The epochs under which it knew each room.
    epochs: BTreeMap<RoomId, Epoch>,
    pub(crate) is_paused: bool,
    pub(crate) delayed: Vec<Event>,
    /// Since when own jobs have waited for the own worker, and since when while lent slots were idle.
    pub(crate) short_since: Option<Duration>,
    pub(crate) idle_since: Option<Duration>,
}

impl Server {
    pub(crate) fn new(net: &mut Net, node: usize, models: u8) -> Self {
        let id = ServerId::from_random(net.stream.wide());
        let name = ServerName::from(format!("n{node}").as_str());
        let worker =
            (net.workers[node].0 > 0).then(|| (ProviderId::from_random(net.stream.bits()), models));
        let config = Config {
            queue_timeout: Duration::from_secs(5),
            busy_timeout: Duration::from_secs(20),
            request_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(10),
            ..Config::default()
        };
        let rules = net.mutant.rules;
        let mut server = Self {
            node,
            id,
            shift: Duration::from_secs(net.stream.below(100_000)),
            members: Members::new(id, name.clone(), worker),
            lending: Lending::under(rules),
            borrowing: Borrowing::under(rules),
            homes: RoomHomes::new(id, name),
            dispatcher: Dispatcher::new(config, Box::new(LeastLoaded)),
            exchanges: BTreeMap::new(),
            ended: EndedStreams::default(),
            worker,
            borrowed: BTreeMap::new(),
            wanted: BTreeMap::new(),
            epochs: BTreeMap::new(),
            is_paused: false,
            delayed: Vec::new(),
            short_since: None,
            idle_since: None,
        };
        net.ids[node] = Some(id);
        net.workers[node].1.clear();
        let now = server.now(net);
        if let Some((provider, models)) = worker {
            let offer = offer(models, net.workers[node].0, false);
            server.dispatcher.handle(now, dispatch::Input::Join { provider, offer });
            server.lending.handle(now, lending::Input::Offered { provider });
        }
        if !net.cut.contains(&node) {
            server.transport(net, true);
        }
        server
    }

    pub(crate) fn now(&self, net: &Net) -> Instant {
        net.base + net.now + self.shift
    }

    /// When its next deadline is.
    pub(crate) fn due(&self, net: &Net) -> Option<Duration> {
        let machines = [
            self.members.poll_timeout(),
            self.lending.poll_timeout(),
            self.borrowing.poll_timeout(),
            self.homes.poll_timeout(),
            self.dispatcher.poll_timeout().map(|(at, _)| at),
        ];
        let streams = self.exchanges.values().filter_map(|it| it.stream.poll_timeout());
        let first = machines.into_iter().flatten().chain(streams).min()?;
        Some(first.saturating_duration_since(net.base + self.shift))
    }

    pub(crate) fn handle_timeout(&mut self, net: &mut Net) {
        let now = self.now(net);
        self.members.handle_timeout(now);
        self.lending.handle_timeout(now);
        self.borrowing.handle_timeout(now);
        self.homes.handle_timeout(now);
        // A capacity that is over must not be used by what is due in the dispatcher.
        self.settle(net);
        self.dispatcher.handle_timeout(now);
        self.exchanges.values_mut().for_each(|it| it.stream.handle_timeout(now));
        self.settle(net);
    }

    pub(crate) fn handle(&mut self, net: &mut Net, event: Event) {
        let now = self.now(net);
        match event {
            Event::Lent { from, bytes, .. } => {
                if let Ok(message) = Message::decode(&bytes) {
                    self.lending.handle(now, lending::Input::Message { from, message });
                    self.borrowing.handle(now, borrowing::Input::Message { from, message });
                }
            }
            Event::Frame { from, bytes, .. } => self.frame(net, from, bytes),
            Event::Seen { record, .. } => self.members.handle(now, members::Input::Seen(record)),
            Event::RoomSeen { room, placement, revision, .. } => {
                let input = room_homes::Input::Seen { room, placement, revision };
                self.homes.handle(now, input);
            }
            Event::Claimed { room, epoch, revision, .. } => {
                self.homes.handle(now, room_homes::Input::Claimed { room, epoch, revision });
            }
            Event::ClaimLost { room, found, .. } => {
                self.homes.handle(now, room_homes::Input::ClaimLost { room, found });
            }
            Event::Transport { works, .. } => self.transport(net, works),
            Event::Listed { .. } => self.homes.handle(now, room_homes::Input::Connected),
            Event::Begins { job, token, .. } => self.begins(net, job, token),
            Event::Ends { job, token, .. } => self.ends(net, job, token),
            Event::Read { stream, bytes, .. } => {
                if let Some(it) = self.exchanges.get_mut(&stream) {
                    it.stream.consumed(now, bytes);
                }
            }
            Event::Publish { .. }
            | Event::Claim { .. }
            | Event::Start { .. }
            | Event::Wake { .. } => {}
        }
        self.settle(net);
    }

    pub(crate) fn submit(&mut self, net: &mut Net, job: JobId, model: u8) {
        let now = self.now(net);
        self.dispatcher.handle(now, dispatch::Input::Submit(spec(job, model, None)));
        self.settle(net);
    }

    pub(crate) fn hang_up(&mut self, net: &mut Net, job: JobId) {
        let now = self.now(net);
        net.conclude(job, Outcome::HungUp);
        self.dispatcher.handle(now, dispatch::Input::ClientGone { job });
        self.settle(net);
    }

    pub(crate) fn room(&mut self, net: &mut Net, input: room_homes::Input) {
        let now = self.now(net);
        self.homes.handle(now, input);
        self.settle(net);
    }

    /// It notices that the transport works, or does not.
    fn transport(&mut self, net: &mut Net, works: bool) {
        let now = self.now(net);
        if works {
            self.members.handle(now, members::Input::Connected);
            net.show_all(self.node);
        } else {
            self.members.handle(now, members::Input::Disconnected);
            self.homes.handle(now, room_homes::Input::Disconnected);
        }
    }

    /// Carries out what the machines put out, until nothing is left.
    pub(crate) fn settle(&mut self, net: &mut Net) {
        loop {
            let mut is_quiet = true;
            while let Some(output) = self.dispatcher.poll_output() {
                self.dispatched(net, output);
                is_quiet = false;
            }
            while let Some(output) = self.members.poll_output() {
                self.member(net, output);
                is_quiet = false;
            }
            while let Some(output) = self.lending.poll_output() {
                self.lent(net, output);
                is_quiet = false;
            }
            while let Some(output) = self.borrowing.poll_output() {
                self.borrow(net, output);
                is_quiet = false;
            }
            while let Some(output) = self.homes.poll_output() {
                self.homed(net, output);
                is_quiet = false;
            }
            is_quiet &= !self.exchange(net);
            is_quiet &= !self.want(net);
            if is_quiet {
                return;
            }
        }
    }

    /// Says what is wanted and used of fellows. Returns whether that has changed.
    fn want(&mut self, net: &Net) -> bool {
        let now = self.now(net);
        let mut changed = false;
        for (provider, jobs) in self.dispatcher.wants(now) {
            let Some(fellow) = self.borrowed.get(&provider).copied() else { continue };
            let used = self.dispatcher.provider(provider).map_or(0, |view| view.in_flight);
            if self.wanted.insert(provider, (jobs, used)) != Some((jobs, used)) {
                let input = borrowing::Input::Used { fellow, provider, jobs: used };
                self.borrowing.handle(now, input);
                self.borrowing.handle(now, borrowing::Input::Demand { fellow, provider, jobs });
                changed = true;
            }
        }
        changed
    }

    fn dispatched(&mut self, net: &mut Net, output: dispatch::Output) {
        let now = self.now(net);
        match output {
            dispatch::Output::Assign { job, provider, .. } => self.assign(net, job, provider),
            dispatch::Output::Cancel { job, provider, .. } => self.cancel(net, job, provider),
            dispatch::Output::End { job, ending } => self.end(net, job, &ending),
            dispatch::Output::AskProgress { job } => {
                let waiting = BlockedOn::Provider;
                self.dispatcher.handle(now, dispatch::Input::Progress { job, at: now, waiting });
            }
            // No answer is said to be resumable here.
            dispatch::Output::BrokenOff { .. } | dispatch::Output::Retire { .. } => {}
        }
    }

    fn assign(&mut self, net: &mut Net, job: JobId, provider: ProviderId) {
        let now = self.now(net);
        if self.worker.is_some_and(|(own, _)| own == provider) {
            return self.give(net, job);
        }
        // One that has left meanwhile has lost the job again.
        let Some(fellow) = self.borrowed.get(&provider).copied() else { return };
        let Some(it) = net.jobs.get(&job) else { return };
        let request =
            Request { provider, job, bytes: it.bytes, takes_ms: it.takes_ms, model: it.model };
        let id = StreamId::from_random(net.stream.wide());
        let mut stream = Stream::open(now, id).under(net.mutant.rules);
        stream.write(now, request.encode(net.now), true);
        net.account.through_fellows += 1;
        net.say(|| format!("n{} sends {job} to {fellow} as {id:?}", self.node));
        let side = Side::Home { job, provider, got: 0, ended: false };
        net.at_home.insert(id);
        self.exchanges.insert(id, Exchange { peer: fellow, stream, side });
    }

    /// A job begins at the own worker.
    fn give(&mut self, net: &mut Net, job: JobId) {
        let token = net.token();
        let (slots, jobs) = &mut net.workers[self.node];
        jobs.insert(job, token);
        let is_lent = !net.jobs.contains_key(&job);
        let (slots, count) = (*slots, jobs.len());
        net.say(|| format!("n{}'s worker has {job}, lent: {is_lent}, {count} in all", self.node));
        if count > slots as usize {
            net.fail(format!("the worker of n{} has {count} jobs in {slots} slots", self.node));
        }
        let takes = self.takes(net, job);
        let begins = Duration::from_millis(takes / 3);
        net.plan(begins, Event::Begins { at: self.id, job, token });
        net.plan(Duration::from_millis(takes), Event::Ends { at: self.id, job, token });
    }

    fn takes(&self, net: &Net, job: JobId) -> u64 {
        let served = self.exchanges.values().find_map(|it| it.side.served(job));
        served.or_else(|| net.jobs.get(&job).map(|it| it.takes_ms)).unwrap_or(0)
    }

    fn cancel(&mut self, net: &mut Net, job: JobId, provider: ProviderId) {
        let now = self.now(net);
        if self.worker.is_some_and(|(own, _)| own == provider) {
            net.workers[self.node].1.remove(&job);
            net.say(|| format!("n{}'s worker stops {job}", self.node));
            self.lending.handle(now, lending::Input::Ended { job });
            return;
        }
        net.unease(self.id);
        let mut theirs = self.exchanges.values_mut().filter(|it| it.side.is_home_of(job, provider));
        if let Some(it) = theirs.next() {
            it.stream.reset(now, Reason::Cancelled, Bytes::new());
        }
    }

    fn end(&mut self, net: &mut Net, job: JobId, ending: &Ending) {
        let now = self.now(net);
        let Some(it) = self.exchanges.values_mut().find(|it| it.side.served(job).is_some()) else {
            if *ending == Ending::NotLent {
                net.fail(format!("the own job {job} ended as not lent"));
            }
            return net.conclude(job, Outcome::Ended(format!("{ending:?}")));
        };
        if *ending == Ending::NotLent {
            net.fail(format!("n{} has a lent slot for {job}, and its dispatcher none", self.node));
        }
        it.stream.reset(now, Reason::Failed, Bytes::new());
        net.workers[self.node].1.remove(&job);
        self.lending.handle(now, lending::Input::Ended { job });
    }

    fn begins(&mut self, net: &mut Net, job: JobId, token: u64) {
        if net.workers[self.node].1.get(&job) != Some(&token) {
            return;
        }
        let now = self.now(net);
        self.dispatcher.handle(now, dispatch::Input::Begun { job, resumable: None });
        if let Some(it) = self.exchanges.values_mut().find(|it| it.side.served(job).is_some()) {
            it.side.may_write_half();
        }
    }

    fn ends(&mut self, net: &mut Net, job: JobId, token: u64) {
        if net.workers[self.node].1.get(&job) != Some(&token) {
            return;
        }
        match self.exchanges.values_mut().find(|it| it.side.served(job).is_some()) {
            Some(it) => it.side.may_write_all(),
            None => {
                net.conclude(job, Outcome::Answered);
                self.note_answered(net, job);
            }
        }
    }

    /// The own worker has finished a job.
    pub(crate) fn note_answered(&mut self, net: &mut Net, job: JobId) {
        let now = self.now(net);
        net.workers[self.node].1.remove(&job);
        self.lending.handle(now, lending::Input::Ended { job });
        let Some((provider, _)) = self.worker else { return };
        let verdict = Verdict::Answered;
        let input = dispatch::Input::Finished { job, provider, verdict, tokens: None };
        self.dispatcher.handle(now, input);
    }

    fn member(&mut self, net: &mut Net, output: members::Output<Facts>) {
        let now = self.now(net);
        match output {
            members::Output::Publish(record) => {
                net.write(self.node, Event::Publish { node: self.node, record });
            }
            members::Output::Joined(record) => {
                net.say(|| format!("n{} has the fellow {}", self.node, record.name));
                let fellow = record.id;
                self.lending.handle(now, lending::Input::Joined { fellow });
                let name = record.name;
                self.homes.handle(now, room_homes::Input::Joined { fellow, name });
                let Some((provider, models)) = record.facts else { return };
                self.borrowed.insert(provider, fellow);
                self.borrowing.handle(now, borrowing::Input::Offered { fellow, provider });
                let offer = offer(models, 0, true);
                self.dispatcher.handle(now, dispatch::Input::Join { provider, offer });
            }
            members::Output::Left(fellow) => self.left(net, fellow),
            members::Output::SameName { other } => {
                if net.node_of(other).is_some_and(|node| node != self.node) {
                    net.fail(format!("n{} and {other} have one name", self.node));
                }
            }
            members::Output::Changed(_) | members::Output::Refused(_) => {}
        }
    }

    fn left(&mut self, net: &mut Net, fellow: ServerId) {
        let now = self.now(net);
        net.account.left += 1;
        net.unease(self.id);
        net.lefts.insert((self.id, fellow), net.now);
        net.say(|| format!("n{} has lost {fellow}", self.node));
        self.lending.handle(now, lending::Input::Left { fellow });
        self.borrowing.handle(now, borrowing::Input::Left { fellow });
        self.homes.handle(now, room_homes::Input::Left { fellow });
        for it in self.exchanges.values_mut().filter(|it| it.peer == fellow) {
            it.stream.reset(now, Reason::Left, Bytes::new());
        }
        let its = self.borrowed.iter().filter(|(_, other)| **other == fellow);
        for provider in its.map(|(provider, _)| *provider).collect::<Vec<_>>() {
            self.borrowed.remove(&provider);
            self.wanted.remove(&provider);
            let why = LeaveReason::Closed;
            self.dispatcher.handle(now, dispatch::Input::Leave { provider, why });
        }
    }

    fn lent(&mut self, net: &mut Net, output: lending::Output) {
        let now = self.now(net);
        match output {
            lending::Output::Look { provider } => {
                let free = self.dispatcher.lendable(provider);
                let waiting = self.dispatcher.short(provider);
                self.lending.handle(now, lending::Input::Room { provider, free, waiting });
            }
            lending::Output::Lend { provider, slots } => {
                self.dispatcher.handle(now, dispatch::Input::Lend { provider, slots });
            }
            lending::Output::Send { to, message } => self.say_to(net, to, message),
            lending::Output::Cancel { job } => {
                self.dispatcher.handle(now, dispatch::Input::ClientGone { job });
            }
        }
    }

    fn borrow(&mut self, net: &mut Net, output: borrowing::Output) {
        let now = self.now(net);
        match output {
            borrowing::Output::Capacity { provider, slots: max_concurrent, .. } => {
                let input = dispatch::Input::Capacity { provider, max_concurrent };
                self.dispatcher.handle(now, input);
                // A job that is assigned by this is there before anything is sent.
                while let Some(output) = self.dispatcher.poll_output() {
                    self.dispatched(net, output);
                }
            }
            borrowing::Output::Send { to, message } => self.say_to(net, to, message),
        }
    }

    fn say_to(&mut self, net: &mut Net, to: ServerId, message: Message) {
        net.account.recalls += u64::from(matches!(message, Message::Recall { .. }));
        net.say(|| format!("n{} to {to}: {message:?}", self.node));
        let bytes = Bytes::copy_from_slice(&message.encode());
        net.send(self.node, to, Event::Lent { from: self.id, to, bytes });
    }

    fn homed(&mut self, net: &mut Net, output: room_homes::Output) {
        net.say(|| format!("n{}: {output:?}", self.node));
        let (room, epoch) = match output {
            room_homes::Output::Claim { room, epoch, expected_revision: expected } => {
                let placement =
                    fleet::Placement { epoch, name: format!("n{}", self.node).as_str().into() };
                let claim =
                    Event::Claim { node: self.node, by: self.id, room, placement, expected };
                return net.write(self.node, claim);
            }
            room_homes::Output::Home { room, epoch } => {
                net.account.adopted += u64::from(epoch.number > 1);
                (room, epoch)
            }
            room_homes::Output::Follow { room, epoch } => (room, epoch),
            room_homes::Output::Yield { room, to } => {
                net.account.yielded += 1;
                (room, to)
            }
        };
        if let Some(before) = self.epochs.insert(room.clone(), epoch)
            && before > epoch
        {
            net.fail(format!("n{} goes from {before:?} back to {epoch:?} of {room}", self.node));
        }
    }

    /// The rooms that it orders.
    pub(crate) fn ordered<'a>(
        &'a self,
        rooms: impl Iterator<Item = &'a RoomId>,
    ) -> BTreeSet<&'a RoomId> {
        rooms.filter(|room| matches!(self.homes.home(room), Home::Here(_))).collect()
    }
}

fn offer(models: u8, max_concurrent: u32, borrowed: bool) -> Offer {
    Offer {
        scope: Scope::server(),
        models: (0..3).filter(|bit| models >> bit & 1 == 1).map(model).collect(),
        unloaded: Vec::new(),
        max_concurrent,
        load: 0,
        max_size: u64::MAX,
        endpoints: Endpoints::ASSUMED,
        distance: if borrowed { Distance::Fellow } else { Distance::Here },
        lingers: false,
        acknowledges: false,
        borrowed,
    }
}

fn model(number: u8) -> ModelName {
    ModelName::from(["a", "b", "c"][usize::from(number % 3)])
}

/// A client's job, or a fellow's for this provider.
pub(crate) fn spec(job: JobId, number: u8, lent: Option<ProviderId>) -> JobSpec {
    JobSpec {
        id: job,
        scope: Scope::server(),
        model: model(number),
        fallbacks: Vec::new(),
        endpoint: Endpoint::ChatCompletions,
        serve_as: Endpoints::only(Endpoint::ChatCompletions),
        key: KeyId::local(),
        page_session: None,
        size: 1,
        affinity: Affinity::default(),
        pinned: lent,
        lent: lent.is_some(),
        route: Route::default(),
        clouds: false,
        known: true,
    }
}
