//! All servers, what is between them, and what must hold after every step.

use std::time::Duration;

use base::{JobId, RoomId};
use fleet::room_homes;

use crate::{
    net::{ClientJob, Event, Mutant, Net, Outcome},
    plan::{Act, Plan, Step, Stream},
    server::{MOST_SHORT, Server},
};

#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) servers: Vec<Option<Server>>,
    pub(crate) net: Net,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, mutant: Mutant, is_traced: bool) -> Self {
        let mut net = Net::new(plan, mutant, is_traced);
        let nodes = 0..plan.workers.len();
        nodes.clone().for_each(|node| net.plan(Duration::ZERO, Event::Start { node }));
        Self { plan, servers: nodes.map(|_| None).collect(), net }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), String> {
        let end = self.net.now + time;
        loop {
            let due = self.servers.iter().flatten().filter(|it| !it.is_paused);
            let due = due.filter_map(|it| Some((it.due(&self.net)?, it.node))).min();
            let event = self.net.next_at();
            match (due, event) {
                (Some((at, node)), event) if at <= end && event.is_none_or(|event| at < event) => {
                    self.net.now = self.net.now.max(at);
                    self.with(node, Server::handle_timeout);
                }
                (_, Some(at)) if at <= end => {
                    self.net.now = self.net.now.max(at);
                    if let Some(event) = self.net.pop() {
                        self.event(event);
                    }
                }
                _ => break,
            }
            self.check()?;
        }
        self.net.now = end;
        Ok(())
    }

    pub(crate) fn step(&mut self, step: &Step) -> Result<(), String> {
        self.pass(Duration::from_millis(step.wait_ms))?;
        let mut stream = step.stream.clone();
        self.act(step.act, &mut stream);
        self.check()
    }

    /// From now on nothing goes wrong any more.
    pub(crate) fn heal(&mut self) {
        let cut = std::mem::take(&mut self.net.cut);
        self.net.deaf.clear();
        for node in cut {
            self.net.plan(Duration::ZERO, Event::Transport { node, works: true });
        }
    }

    pub(crate) fn with(&mut self, node: usize, act: impl FnOnce(&mut Server, &mut Net)) {
        if let Some(mut server) = self.servers[node].take() {
            act(&mut server, &mut self.net);
            self.servers[node] = Some(server);
        }
    }

    fn act(&mut self, act: Act, stream: &mut Stream) {
        let node = stream.index(self.servers.len());
        let runs = self.servers[node].as_ref().is_some_and(|it| !it.is_paused);
        match act {
            Act::Jobs if runs => self.jobs(node, stream),
            Act::HangUp => self.hang_up(stream),
            Act::Pause if runs => self.pause(node, stream),
            Act::Kill if runs => self.kill(node, stream),
            Act::Cut => self.cut(node, stream),
            Act::Outage => (0..self.servers.len()).for_each(|node| self.cut(node, stream)),
            Act::Deafen => {
                let other = stream.index(self.servers.len());
                self.net.deaf.insert((node, other));
                [node, other].into_iter().for_each(|node| self.net.trouble(node));
            }
            Act::Heal => self.heal(),
            Act::Room if runs => {
                let room = RoomId::from(format!("room{}", stream.below(1_000)));
                // Ids of rooms are random: none is made twice.
                if !self.net.claimed.contains_key(&(room.clone(), 1)) {
                    self.net.say(|| format!("n{node} makes {room}"));
                    self.with(node, |server, net| {
                        server.room(net, room_homes::Input::Created { room });
                    });
                }
            }
            Act::Use if runs => {
                let is_used = !stream.one_in(4);
                for room in self.net.rooms.keys().cloned().collect::<Vec<_>>() {
                    self.with(node, |server, net| {
                        server.room(net, room_homes::Input::Used { room, is_used });
                    });
                }
            }
            Act::Forget => self.forget(),
            _ => {}
        }
    }

    fn jobs(&mut self, node: usize, stream: &mut Stream) {
        let many = if stream.one_in(6) { 14 } else { 4 };
        let model = u8::try_from(stream.below(3)).unwrap_or(0);
        let long = if stream.one_in(4) { 2_500 } else { 500 };
        let long = if self.plan.is_noisy { 60 } else { long };
        for _ in 0..1 + stream.below(many) {
            let job = JobId::from_random(stream.wide());
            let bytes = if stream.one_in(8) { stream.below(900_000) } else { stream.below(3_000) };
            let home = self.servers[node].as_ref().map(|it| it.id);
            let Some(home) = home else { return };
            let takes_ms = 3 + stream.below(long);
            let it = ClientJob { home, model, bytes, takes_ms, outcome: None };
            self.net.jobs.insert(job, it);
            self.net.account.jobs += 1;
            self.net.say(|| format!("n{node} has {job} of model {model}"));
            self.with(node, |server, net| server.submit(net, job, model));
        }
    }

    fn hang_up(&mut self, stream: &mut Stream) {
        let open = self.net.jobs.iter().filter(|(_, it)| it.outcome.is_none());
        let open: Vec<_> = open.map(|(job, it)| (*job, it.home)).collect();
        let Some((job, home)) = open.get(stream.index(open.len())).copied() else { return };
        let Some(node) = self.net.node_of(home) else { return };
        if self.servers[node].as_ref().is_some_and(|it| !it.is_paused) {
            self.with(node, |server, net| server.hang_up(net, job));
        }
    }

    fn pause(&mut self, node: usize, stream: &mut Stream) {
        self.net.trouble(node);
        self.net.say(|| format!("n{node} is stopped"));
        self.with(node, |server, _| server.is_paused = true);
        let time = if stream.one_in(2) { stream.below(8_000) } else { stream.below(1_000) };
        self.net.plan(Duration::from_millis(time), Event::Wake { node });
    }

    fn wake(&mut self, node: usize) {
        self.net.trouble(node);
        self.net.say(|| format!("n{node} goes on"));
        self.with(node, |server, net| {
            server.is_paused = false;
            // What is due comes before what has come meanwhile.
            server.handle_timeout(net);
            for event in std::mem::take(&mut server.delayed) {
                server.handle(net, event);
            }
        });
    }

    fn kill(&mut self, node: usize, stream: &mut Stream) {
        self.net.trouble(node);
        self.net.say(|| format!("n{node} is killed"));
        let Some(server) = self.servers[node].take() else { return };
        self.net.ids[node] = None;
        self.net.workers[node].1.clear();
        let of_home = |it: &ClientJob| it.home == server.id && it.outcome.is_none();
        let jobs = self.net.jobs.iter().filter(|(_, it)| of_home(it));
        for job in jobs.map(|(job, _)| *job).collect::<Vec<_>>() {
            self.net.conclude(job, Outcome::HomeDied);
        }
        self.net.plan(Duration::from_millis(stream.below(6_000)), Event::Start { node });
    }

    fn cut(&mut self, node: usize, stream: &mut Stream) {
        if self.net.cut.insert(node) {
            self.net.trouble(node);
            self.net.say(|| format!("n{node} is cut off"));
            let noticed = Duration::from_millis(stream.below(1_500));
            self.net.plan(noticed, Event::Transport { node, works: false });
        }
    }

    fn forget(&mut self) {
        self.net.say(|| "all records are lost".to_owned());
        self.net.rooms.clear();
        self.net.records.clear();
        self.net.revision = 0;
        self.net.claimed.retain(|(_, number), _| *number == 1);
        let now = self.net.now;
        for node in 0..self.servers.len() {
            // Everybody loses the connection with it.
            self.net.trouble(node);
            self.net.plan_at(now, Event::Transport { node, works: false });
            if !self.net.cut.contains(&node) {
                let back = now + Duration::from_millis(200);
                self.net.plan_at(back, Event::Transport { node, works: true });
            }
        }
    }

    fn event(&mut self, event: Event) {
        let node = match &event {
            Event::Publish { .. } | Event::Claim { .. } => return self.written(event),
            Event::Start { node } => return self.start(*node),
            Event::Wake { node } => return self.wake(*node),
            Event::Seen { node, .. }
            | Event::RoomSeen { node, .. }
            | Event::Listed { node }
            | Event::Transport { node, .. } => Some(*node),
            Event::Lent { to, .. }
            | Event::Frame { to, .. }
            | Event::Claimed { to, .. }
            | Event::ClaimLost { to, .. } => self.net.node_of(*to),
            Event::Begins { at, .. } | Event::Ends { at, .. } | Event::Read { at, .. } => {
                self.net.node_of(*at)
            }
        };
        let Some(node) = node else { return };
        if let Event::Transport { works, .. } = event
            && works == self.net.cut.contains(&node)
        {
            return;
        }
        self.with(node, |server, net| match server.is_paused {
            true => server.delayed.push(event),
            false => server.handle(net, event),
        });
    }

    fn start(&mut self, node: usize) {
        let models = self.plan.workers[node].1;
        let server = Server::new(&mut self.net, node, models);
        self.net.say(|| format!("n{node} starts as {}", server.id));
        self.servers[node] = Some(server);
        self.with(node, Server::settle);
    }

    /// A write comes to the records.
    fn written(&mut self, event: Event) {
        let nodes = 0..self.servers.len();
        match event {
            Event::Publish { node, record } if !self.net.cut.contains(&node) => {
                self.net.records.insert(record.id, record.clone());
                let record = &record;
                nodes.for_each(|node| {
                    self.net.show(node, Event::Seen { node, record: record.clone() });
                });
            }
            Event::Claim { node, by, room, placement, expected }
                if !self.net.cut.contains(&node) =>
            {
                let found = self.net.rooms.get(&room).cloned();
                let revision = found.as_ref().map_or(0, |(_, revision)| *revision);
                if revision != expected && self.net.mutant.compare_and_set {
                    let lost = Event::ClaimLost { to: by, room, found };
                    return self.net.write(node, lost);
                }
                self.net.revision += 1;
                let (epoch, revision) = (placement.epoch, self.net.revision);
                let number = (room.clone(), epoch.number);
                if let Some(other) = self.net.claimed.insert(number, epoch.home)
                    && other != epoch.home
                {
                    self.net.fail(format!("{room} has two homes in epoch {}", epoch.number));
                }
                self.net.rooms.insert(room.clone(), (placement.clone(), revision));
                let won = Event::Claimed { to: by, room: room.clone(), epoch, revision };
                self.net.write(node, won);
                for node in nodes {
                    let (room, placement) = (room.clone(), placement.clone());
                    self.net.show(node, Event::RoomSeen { node, room, placement, revision });
                }
            }
            _ => {}
        }
    }

    /// Checks the rules that must hold at any time.
    fn check(&mut self) -> Result<(), String> {
        if let Some(fault) = self.net.fault.take() {
            return Err(fault);
        }
        for lender in self.servers.iter().flatten() {
            let Some((provider, _)) = lender.worker else { continue };
            let lent = lender.lending.lent(provider);
            let view = lender.dispatcher.provider(provider).ok_or("a worker is gone")?;
            if view.lent != lent || lent > view.max_concurrent {
                return Err(format!("n{} lends {lent}, and {view:?}", lender.node));
            }
            for borrower in self.servers.iter().flatten() {
                let now = borrower.now(&self.net);
                let usable = borrower.borrowing.usable(now, lender.id, provider);
                let has = lender.lending.lent_to(borrower.id, provider);
                if usable > has {
                    return Err(format!(
                        "n{} may use {usable} slots of n{}, which lends it {has}",
                        borrower.node, lender.node
                    ));
                }
            }
        }
        self.check_own_jobs()
    }

    /// Own jobs do not wait for long while slots are lent.
    fn check_own_jobs(&mut self) -> Result<(), String> {
        let now = self.net.now;
        for it in self.servers.iter_mut().flatten() {
            let Some((provider, _)) = it.worker else { continue };
            let calm = !it.is_paused && self.net.is_easy(it.id);
            let short = calm && it.dispatcher.short(provider) > 0;
            let view = it.dispatcher.provider(provider);
            let idle = short && view.is_some_and(|view| view.lent > view.lent_jobs);
            it.short_since = short.then(|| it.short_since.unwrap_or(now));
            it.idle_since = idle.then(|| it.idle_since.unwrap_or(now));
            if it.idle_since.is_some_and(|since| since + MOST_SHORT < now) {
                return Err(format!("own jobs of n{} wait while lent slots are idle", it.node));
            }
        }
        Ok(())
    }
}
