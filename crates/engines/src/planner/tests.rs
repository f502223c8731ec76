//! The planner against its plain rules, with generated histories and with told ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::model::{Group, GroupRule};

const PATIENCE: Duration = Duration::from_secs(5);

fn rules(ram: u64) -> Rules {
    Rules {
        budget: Memory { vram: 0, ram },
        limit: Memory { vram: 0, ram: ram * 2 },
        loads_at_once: 1,
        most_waiting: 8,
        patience: PATIENCE,
        failures: FailureRules::default(),
    }
}

fn spec(ram: u64) -> Spec {
    let need = Memory { vram: 0, ram };
    Spec { need, keep: false, ttl: None, group: None, revision: 0 }
}

/// A planner with its driver: servers that start when they are told to, and requests.
struct World {
    planner: Planner,
    rules: Rules,
    specs: BTreeMap<Arc<str>, Spec>,
    now: Instant,
    /// Servers by model: which start, and whether it answers, starts or stops.
    servers: BTreeMap<Arc<str>, (u64, Server)>,
    claims: u64,
    waiting: HashMap<u64, Arc<str>>,
    granted: BTreeMap<u64, (Arc<str>, u64)>,
    refused: HashMap<u64, Refusal>,
    /// Models that may be stopped although they are kept.
    released: BTreeSet<Arc<str>>,
    unloaded: HashMap<u64, Result<(), Refusal>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Starting,
    Loaded,
    Stopping,
}

impl World {
    fn new(rules: Rules, specs: &[(&str, Spec)]) -> Self {
        let mut world = Self {
            planner: Planner::new(rules),
            rules,
            specs: BTreeMap::new(),
            now: Instant::now(),
            servers: BTreeMap::new(),
            claims: 0,
            waiting: HashMap::new(),
            granted: BTreeMap::new(),
            refused: HashMap::new(),
            released: BTreeSet::new(),
            unloaded: HashMap::new(),
        };
        world.set(specs);
        world
    }

    fn set(&mut self, specs: &[(&str, Spec)]) {
        let old = std::mem::take(&mut self.specs);
        self.specs = specs.iter().map(|(name, spec)| ((*name).into(), spec.clone())).collect();
        let changed = old.iter().filter(|(name, old)| {
            self.specs.get(*name).is_none_or(|new| new.revision != old.revision || !new.keep)
        });
        self.released.extend(changed.map(|(name, _)| Arc::clone(name)));
        let list = self.specs.iter().map(|(name, spec)| (Arc::clone(name), spec.clone()));
        self.input(Input::Models(list.collect()));
    }

    fn input(&mut self, input: Input) {
        self.planner.handle(self.now, input);
        self.drain();
    }

    fn claim(&mut self, model: &str) -> u64 {
        self.claims += 1;
        let model: Arc<str> = model.into();
        match self.planner.claim_loaded(&model) {
            Some(generation) => drop(self.granted.insert(self.claims, (model, generation))),
            None => {
                self.waiting.insert(self.claims, Arc::clone(&model));
                self.input(Input::Claim { claim: self.claims, model });
            }
        }
        self.claims
    }

    fn release(&mut self, claim: u64) {
        let Some((model, generation)) = self.granted.remove(&claim) else { return };
        if !self.planner.release_quietly(self.now, &model, generation, true) {
            self.input(Input::Release { model, generation, answered: true });
        }
    }

    fn unload(&mut self, ask: u64, model: &str) {
        let model: Arc<str> = model.into();
        self.released.insert(Arc::clone(&model));
        self.input(Input::Unload { ask, model });
    }

    fn cancel(&mut self, claim: u64) {
        if let Some(model) = self.waiting.remove(&claim) {
            self.input(Input::Cancel { claim, model });
        }
    }

    /// A server does what it was told, or fails.
    fn turn(&mut self, model: &str, well: bool) {
        let Some((name, (generation, server))) = self.servers.get_key_value(model) else { return };
        let (model, generation) = (Arc::clone(name), *generation);
        let reason: Arc<str> = "it broke".into();
        match (*server, well) {
            (Server::Starting, true) => {
                self.servers.insert(Arc::clone(&model), (generation, Server::Loaded));
                self.input(Input::Started { model, generation });
            }
            (Server::Stopping, true) => {
                self.servers.remove(&model);
                self.input(Input::Stopped { model, generation });
            }
            (Server::Loaded, true) => {}
            (_, false) => {
                self.servers.remove(&model);
                self.granted.retain(|_, (of, _)| *of != model);
                self.input(Input::Failed { model, generation, reason });
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut steps = 0;
        while let Some(at) = self.planner.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.planner.handle_timeout(self.now);
            self.drain();
            steps += 1;
            assert!(steps < 10_000, "time stands still");
        }
        self.now = until;
    }

    fn drain(&mut self) {
        while let Some(output) = self.planner.poll_output() {
            self.obey(output);
            self.check();
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Start { model, generation } => {
                let before =
                    self.servers.insert(Arc::clone(&model), (generation, Server::Starting));
                assert_eq!(before, None, "{model} is loaded twice");
                self.released.remove(&model);
            }
            Output::Stop { model, generation } => {
                let busy = self.granted.values().filter(|(of, _)| *of == model).count();
                assert_eq!(busy, 0, "{model} is in use");
                let is_kept = self.specs.get(&model).is_some_and(|spec| spec.keep);
                assert!(!is_kept || self.released.contains(&model), "{model} is kept");
                let server = self.servers.get_mut(&model).unwrap();
                assert!(server.0 == generation && server.1 != Server::Stopping);
                server.1 = Server::Stopping;
            }
            Output::Grant { claim, model, generation } => {
                assert_eq!(self.waiting.remove(&claim).as_ref(), Some(&model), "answered twice");
                assert_eq!(self.servers[&model], (generation, Server::Loaded));
                self.granted.insert(claim, (model, generation));
            }
            Output::Refuse { claim, refusal } => {
                assert!(self.waiting.remove(&claim).is_some(), "answered twice");
                self.refused.insert(claim, refusal);
            }
            Output::Unloaded { ask, result } => {
                assert!(self.unloaded.insert(ask, result).is_none(), "answered twice");
            }
        }
    }

    /// Checks the rules that must hold at any time.
    fn check(&self) {
        let starting = self.servers.values().filter(|it| it.1 == Server::Starting).count();
        assert!(starting <= self.rules.loads_at_once, "{starting} loads at once");
        let present = self.servers.keys().filter_map(|name| self.specs.get(name));
        let present: Vec<_> = present.collect();
        let sum: Memory = present.iter().map(|spec| spec.need).sum();
        assert!(present.len() <= 1 || self.rules.budget.holds(sum), "{:?}", self.servers);
        for (number, one) in present.iter().enumerate() {
            let others = present.iter().skip(number + 1);
            let excluded =
                others.filter(|it| Group::exclude(one.group.as_ref(), it.group.as_ref()));
            assert_eq!(excluded.count(), 0, "{:?}", self.servers);
        }
        for waiters in self.specs.keys().map(|name| self.planner.view(name).unwrap().waiting) {
            assert!(waiters <= self.rules.most_waiting);
        }
    }

    /// Everything ends well from now on.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let granted: Vec<u64> = self.granted.keys().copied().collect();
            granted.into_iter().for_each(|claim| self.release(claim));
            let servers: Vec<Arc<str>> = self.servers.keys().cloned().collect();
            servers.iter().for_each(|name| self.turn(name, true));
            self.pass(Duration::from_secs(1));
            if self.waiting.is_empty() {
                return;
            }
        }
        panic!("these wait for ever: {:?}; {:?}", self.waiting, self.planner);
    }

    fn loaded(&self) -> Vec<&str> {
        let loaded = self.servers.iter().filter(|(_, it)| it.1 == Server::Loaded);
        loaded.map(|(name, _)| &**name).collect()
    }

    /// Asks for a model and has it loaded, whichever has to go for it.
    fn used(&mut self, model: &str) {
        let claim = self.claim(model);
        for _ in 0..2 {
            let servers: Vec<Arc<str>> = self.servers.keys().cloned().collect();
            servers.iter().for_each(|name| self.turn(name, true));
        }
        assert!(self.granted.contains_key(&claim), "{model}: {:?}", self.refused.get(&claim));
        self.pass(Duration::from_secs(1));
        self.release(claim);
    }
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[derive(Debug, Clone)]
enum Step {
    Claim(usize),
    Release(usize),
    Cancel(usize),
    Unload(usize),
    Turn(usize, bool),
    Pass(u64),
    Change(usize, u64),
    Without(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let model = 0..NAMES.len();
    prop_oneof![
        6 => model.clone().prop_map(Step::Claim),
        5 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => model.clone().prop_map(Step::Unload),
        8 => (model.clone(), prop::bool::weighted(0.9)).prop_map(|(of, well)| Step::Turn(of, well)),
        3 => (0..20_000_u64).prop_map(Step::Pass),
        1 => (model.clone(), 0..3_u64).prop_map(|(of, revision)| Step::Change(of, revision)),
        1 => model.prop_map(Step::Without),
    ]
}

fn some_spec() -> impl Strategy<Value = Spec> {
    let group = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Group { name: "g".into(), rule: GroupRule::OneAtATime })),
        1 => Just(Some(Group { name: "h".into(), rule: GroupRule::Alone })),
    ];
    (1..9_u64, 1..9_u64, prop::bool::weighted(0.1), prop::option::of(1..30_u64), group).prop_map(
        |(ram, vram, keep, ttl, group)| {
            let ttl = ttl.map(Duration::from_secs);
            Spec { need: Memory { vram, ram }, keep, ttl, group, revision: 0 }
        },
    )
}

fn play(world: &mut World, all: &[(&str, Spec)], step: &Step, asks: &mut u64) {
    let nth = |keys: Vec<u64>, number: usize| keys.get(number % keys.len().max(1)).copied();
    match *step {
        Step::Claim(of) => drop(world.claim(NAMES[of])),
        Step::Release(number) => {
            let granted = nth(world.granted.keys().copied().collect(), number);
            granted.into_iter().for_each(|claim| world.release(claim));
        }
        Step::Cancel(number) => {
            let mut waiting: Vec<u64> = world.waiting.keys().copied().collect();
            waiting.sort_unstable();
            nth(waiting, number).into_iter().for_each(|claim| world.cancel(claim));
        }
        Step::Unload(of) => {
            *asks += 1;
            world.unload(*asks, NAMES[of]);
        }
        Step::Turn(of, well) => world.turn(NAMES[of], well),
        Step::Pass(time) => world.pass(Duration::from_millis(time)),
        Step::Change(of, revision) => {
            let mut specs = world.specs.clone();
            let same = Spec { revision, ..all[of].1.clone() };
            specs.insert(NAMES[of].into(), same);
            set_all(world, &specs);
        }
        Step::Without(of) => {
            let mut specs = world.specs.clone();
            specs.remove(NAMES[of]);
            set_all(world, &specs);
        }
    }
}

fn set_all(world: &mut World, specs: &BTreeMap<Arc<str>, Spec>) {
    let specs: Vec<(&str, Spec)> = specs.iter().map(|(name, it)| (&**name, it.clone())).collect();
    world.set(&specs);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_rules_hold_in_any_history_and_everybody_is_answered_once(
        specs in vec(some_spec(), NAMES.len()),
        loads_at_once in 1..3_usize,
        steps in vec(step(), 1..150),
    ) {
        let budget = Memory { vram: 10, ram: 10 };
        let rules = Rules { budget, limit: budget + budget, loads_at_once, ..rules(0) };
        let specs: Vec<_> = NAMES.into_iter().zip(specs).collect();
        let mut world = World::new(rules, &specs);
        let mut asks = 0;
        for step in &steps {
            play(&mut world, &specs, step, &mut asks);
            world.check();
        }
        world.settle();
        prop_assert_eq!(world.unloaded.len() as u64, asks);
    }

    /// However long and often the others are used: a load begins when patience and the longest request are over.
    #[test]
    fn nobody_starves(overlap in 1..4_u64, length in 1..8_u64, others in 1..3_usize) {
        let mut world = World::new(rules(10), &[("a", spec(5)), ("b", spec(5)), ("c", spec(8))]);
        for name in &NAMES[..others] {
            world.used(name);
        }
        let mut running = Vec::new();
        let mut asked = None;
        let mut waited = 0;
        for second in 0..60_u64 {
            for name in &NAMES[..others] {
                if second % overlap.min(length) == 0 {
                    running.push((second + length, world.claim(name)));
                }
            }
            if second == 10 {
                asked = Some(world.claim("c"));
            }
            running.retain(|(until, claim)| *until > second || { world.release(*claim); false });
            world.servers.keys().cloned().collect::<Vec<_>>().iter().for_each(|it| world.turn(it, true));
            world.pass(Duration::from_secs(1));
            if asked.is_some_and(|claim| world.waiting.contains_key(&claim)) {
                waited += 1;
            } else if let Some(claim) = asked {
                world.release(claim);
            }
        }
        prop_assert!(waited <= PATIENCE.as_secs() + length + 3, "waited {waited} s");
        running.into_iter().for_each(|(_, claim)| world.release(claim));
        world.settle();
    }
}

#[test]
fn one_load_serves_all_who_wait_and_the_longest_unused_goes() {
    let models = [("a", spec(4)), ("b", spec(4)), ("c", spec(4))];
    let mut world = World::new(rules(10), &models);
    let claims = [world.claim("a"), world.claim("a"), world.claim("a")];
    world.turn("a", true);
    assert!(claims.iter().all(|claim| world.granted.contains_key(claim)));
    claims.iter().for_each(|claim| world.release(*claim));
    world.pass(Duration::from_secs(1));
    world.used("b");
    world.used("a");
    world.used("c");
    assert_eq!(world.loaded(), ["a", "c"]);
}

#[test]
fn a_model_in_use_stays_and_drains_only_after_a_while() {
    let mut world = World::new(rules(10), &[("a", spec(8)), ("b", spec(8))]);
    world.used("a");
    let long = world.claim("a");
    let b = world.claim("b");
    world.pass(PATIENCE - Duration::from_millis(1));
    let short = world.claim("a");
    assert!(world.granted.contains_key(&short), "it does not drain yet");
    world.release(short);
    world.pass(Duration::from_millis(1));
    let late = world.claim("a");
    assert!(world.waiting.contains_key(&late), "it drains");
    world.release(long);
    world.turn("a", true);
    world.turn("b", true);
    assert!(world.granted.contains_key(&b));
    world.settle();
    assert!(world.refused.is_empty());
}

#[test]
fn a_model_that_nobody_waits_for_any_more_makes_none_drain() {
    let mut world = World::new(rules(10), &[("a", spec(8)), ("b", spec(8))]);
    world.used("a");
    let long = world.claim("a");
    let b = world.claim("b");
    world.pass(PATIENCE);
    let late = world.claim("a");
    assert!(world.waiting.contains_key(&late));
    world.cancel(b);
    assert!(world.granted.contains_key(&late), "it is answered by the server that is there");
    world.release(long);
    assert_eq!(world.loaded(), ["a"]);
}

#[test]
fn what_is_too_large_is_refused_with_both_numbers_and_what_may_fit_runs_alone() {
    let large = Spec { need: Memory { vram: 0, ram: 15 }, ..spec(0) };
    let mut world = World::new(rules(10), &[("a", spec(4)), ("b", large), ("c", spec(21))]);
    world.used("a");
    world.used("b");
    assert_eq!(world.loaded(), ["b"]);
    let c = world.claim("c");
    let told = world.refused[&c].to_string();
    assert!(told.contains("21 bytes") && told.contains("20 bytes"), "{told}");
}

#[test]
fn what_is_kept_stays_and_is_named_to_whom_it_is_in_the_way_of() {
    let kept = Spec { keep: true, ttl: Some(Duration::from_secs(1)), ..spec(6) };
    let mut world = World::new(rules(10), &[("a", kept), ("b", spec(6)), ("c", spec(4))]);
    world.used("a");
    world.used("c");
    let b = world.claim("b");
    assert!(world.refused[&b].to_string().contains("kept loaded (a)"), "{:?}", world.refused);
    assert_eq!(world.loaded(), ["a", "c"], "nobody went for a load that cannot be");
    world.pass(Duration::from_secs(100));
    assert_eq!(world.loaded(), ["a", "c"]);
}

#[test]
fn an_unused_model_goes_after_its_time() {
    let spec = Spec { ttl: Some(Duration::from_secs(10)), ..spec(4) };
    let mut world = World::new(rules(10), &[("a", spec)]);
    world.used("a");
    let claim = world.claim("a");
    world.pass(Duration::from_secs(60));
    world.release(claim);
    world.pass(Duration::from_secs(9));
    assert_eq!(world.loaded(), ["a"]);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.servers["a"].1, Server::Stopping);
}

#[test]
fn a_crash_loop_is_refused_with_its_reason_until_its_rest_is_over() {
    let mut world = World::new(rules(10), &[("a", spec(4))]);
    for _ in 0..3 {
        let claim = world.claim("a");
        world.pass(Duration::from_secs(2));
        world.turn("a", false);
        assert_eq!(world.refused[&claim], Refusal::Failed("it broke".into()));
    }
    let refused = world.claim("a");
    let told = world.refused[&refused].to_string();
    assert!(told.contains("3 times") && told.contains("30 s: it broke"), "{told}");
    world.pass(Duration::from_secs(31));
    world.used("a");
    world.turn("a", false);
    let again = world.claim("a");
    assert!(world.waiting.contains_key(&again), "one good answer, and it begins anew");
    world.settle();
}

#[test]
fn a_server_that_dies_is_started_again_for_the_next_request() {
    let mut world = World::new(rules(10), &[("a", spec(4))]);
    world.used("a");
    world.claim("a");
    world.turn("a", false);
    let next = world.claim("a");
    world.turn("a", true);
    assert!(world.granted.contains_key(&next));
}

#[test]
fn a_model_is_unloaded_when_nobody_uses_it() {
    let mut world = World::new(rules(10), &[("a", spec(4))]);
    world.unload(1, "a");
    assert_eq!(world.unloaded[&1], Ok(()));
    let claim = world.claim("a");
    world.unload(2, "a");
    assert_eq!(world.unloaded[&2], Err(Refusal::Loading));
    world.turn("a", true);
    world.unload(3, "a");
    assert_eq!(world.unloaded[&3], Err(Refusal::InUse(1)));
    world.release(claim);
    world.unload(4, "a");
    assert!(!world.unloaded.contains_key(&4), "it has not ended yet");
    world.turn("a", true);
    assert_eq!(world.unloaded[&4], Ok(()));
    world.unload(5, "x");
    assert_eq!(world.unloaded[&5], Err(Refusal::Unknown));
}

#[test]
fn a_model_that_is_gone_finishes_its_requests() {
    let mut world = World::new(rules(4), &[("a", spec(4)), ("b", spec(4))]);
    world.used("a");
    let running = world.claim("a");
    let waits = world.claim("b");
    world.set(&[]);
    assert_eq!(world.refused[&waits], Refusal::Gone);
    let late = world.claim("a");
    assert_eq!(world.refused[&late], Refusal::Unknown);
    assert_eq!(world.loaded(), ["a"]);
    world.release(running);
    world.turn("a", true);
    assert!(world.servers.is_empty() && world.planner.view("a").is_none());
}

#[test]
fn a_changed_model_is_loaded_anew() {
    let mut world = World::new(rules(10), &[("a", spec(4))]);
    world.used("a");
    let running = world.claim("a");
    world.set(&[("a", Spec { revision: 1, ..spec(5) })]);
    let next = world.claim("a");
    assert!(world.waiting.contains_key(&next));
    world.release(running);
    world.turn("a", true);
    world.turn("a", true);
    assert!(world.granted.contains_key(&next));
    assert_eq!(world.planner.view("a").unwrap().need.ram, 5);
}

#[test]
fn only_so_many_wait() {
    let mut world = World::new(rules(10), &[("a", spec(4))]);
    let claims: Vec<u64> = (0..9).map(|_| world.claim("a")).collect();
    assert_eq!(world.refused[&claims[8]], Refusal::Full(8));
    world.turn("a", true);
    assert_eq!(world.granted.len(), 8);
}

#[test]
fn what_a_model_was_seen_to_take_counts_from_then_on() {
    let mut world = World::new(rules(10), &[("a", spec(4)), ("b", spec(4))]);
    world.claim("a");
    let (generation, _) = world.servers["a"];
    world.turn("a", true);
    let memory = Memory { vram: 0, ram: 7 };
    world.specs.get_mut("a").unwrap().need.ram = 7;
    world.input(Input::Measured { model: "a".into(), generation, memory });
    let b = world.claim("b");
    assert!(world.waiting.contains_key(&b), "there is no room beside it any more");
    world.settle();
}
