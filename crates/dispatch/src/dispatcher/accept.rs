//! Whether a job is accepted, and for which of its models.

use std::time::Instant;

use super::Dispatcher;
use crate::{
    distance::{Distance, Route},
    input::JobSpec,
    job::{Job, Target},
    output::Ending,
    provider::Provider,
    providers::Providers,
};

/// The outcome of a request for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prospect {
    /// A provider serves it, even if not at this moment.
    Served,
    /// No provider serves it, but it is worth waiting for.
    Awaited,
    /// No provider will serve it.
    Hopeless(Ending),
}

impl Dispatcher {
    pub(super) fn submit(&mut self, now: Instant, spec: JobSpec) {
        // Ids are unique. Two jobs with one id would share an answer.
        if self.jobs.contains_key(&spec.id) {
            return;
        }
        if self.stopping {
            return self.end(spec.id, Ending::ShuttingDown);
        }
        self.accepted += 1;
        let mut job = Job::new(spec, self.accepted, now);
        // A fellow's job is not queued here. It has its place in the queue of its home.
        if job.spec.lent {
            return self.take_lent(now, job);
        }
        match self.providers.aim(&job) {
            Ok(passed_over) => job.go_on(passed_over),
            Err(ending) => return self.end(job.id(), ending),
        }
        if let Some(job) = self.admit(now, job) {
            let retry_after = self.retry_after(&job.spec);
            self.unmet(now, job, Ending::QueueFull { retry_after });
        }
    }

    /// Assigns a new job or queues it. Returns it when there is no room.
    pub(super) fn admit(&mut self, now: Instant, job: Job) -> Option<Job> {
        if let Some(provider) = self.choose(now, &job) {
            self.assign(now, job, provider);
        } else if self.queues.has_room(&job.spec, &self.config) {
            self.enqueue(now, job);
        } else {
            return Some(job);
        }
        None
    }
}

impl Providers {
    /// How many of the job's targets to skip, to reach the first that is served now, or else the
    /// first that is worth waiting for.
    fn aim(&self, job: &Job) -> Result<usize, Ending> {
        let present = job.target();
        let all = || std::iter::once(&present).chain(job.targets_left());
        let first =
            |wanted: &Prospect| all().position(|it| self.prospect(&job.spec, it) == *wanted);
        let is_absent = |it: &Target| {
            self.of(&job.spec.scope, &it.model).all(|(_, other)| !it.route.reaches(other.distance))
        };
        // A cloud that cannot be reached now is connected and will be tried again. That is better
        // than waiting for own providers when none is connected.
        let cloud = || {
            let mut own = all().filter(|it| it.route != Route::Cloud);
            let is_cloud = |it: &Target| it.route == Route::Cloud;
            let awaited = |it: &Target| self.prospect(&job.spec, it) == Prospect::Awaited;
            let found = all().position(|it| is_cloud(it) && awaited(it));
            found.filter(|_| own.all(is_absent))
        };
        let found = first(&Prospect::Served).or_else(cloud).or_else(|| first(&Prospect::Awaited));
        found.ok_or_else(|| match self.prospect(&job.spec, &present) {
            Prospect::Hopeless(ending) => self.ending(job, ending),
            Prospect::Served | Prospect::Awaited => Ending::NoProvider,
        })
    }

    /// The ending of a job that none of its targets can serve: that of its first model, or of that
    /// model's clouds if no own provider has it.
    fn ending(&self, job: &Job, own: Ending) -> Ending {
        let cloud = Target { route: Route::Cloud, ..job.target() };
        match (own, job.spec.clouds.then(|| self.prospect(&job.spec, &cloud))) {
            (Ending::NoProvider, Some(Prospect::Hopeless(ending))) => ending,
            (own, _) => own,
        }
    }

    /// The prospects of a job for this target. A provider that drains, or whose backend is away,
    /// counts as worth waiting for: it may come back. A provider out of the target's reach does not
    /// count. If only such providers serve the model now, the job does not wait: most likely the
    /// model is known only from them. Clouds that the job may go to are an exception, since the
    /// model may be known from an own provider as well. A cloud itself is waited for only while it
    /// is connected.
    pub(super) fn prospect(&self, spec: &JobSpec, target: &Target) -> Prospect {
        let (mut anybody, mut largest) = (false, None);
        let mut elsewhere = target.route == Route::Cloud;
        for (id, provider) in self.of(&spec.scope, &target.model) {
            if !target.route.reaches(provider.distance) {
                elsewhere |= !(spec.clouds && provider.distance == Distance::Cloud);
                continue;
            }
            // A pinned provider that drains gets no more jobs, and no other may have this one.
            if spec.pinned.is_some_and(|pinned| pinned != id || provider.is_draining()) {
                continue;
            }
            anybody = true;
            if spec.serve_as.meets(provider.endpoints) {
                if takes(provider, spec) {
                    return Prospect::Served;
                }
                largest = largest.max(Some(provider.max_size));
            }
        }
        match largest {
            None if anybody => Prospect::Hopeless(Ending::NotServed),
            None if spec.known && spec.pinned.is_none() && !elsewhere => Prospect::Awaited,
            None => Prospect::Hopeless(Ending::NoProvider),
            Some(limit) if limit < spec.size => Prospect::Hopeless(Ending::TooLarge { limit }),
            Some(_) => Prospect::Awaited,
        }
    }
}

fn takes(provider: &Provider, spec: &JobSpec) -> bool {
    !provider.is_out() && spec.size <= provider.max_size
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints};

    use super::*;
    use crate::{
        Config, Input, Offer, Output, Route, Verdict,
        fixture::{
            Bench, SECOND, assign, assign_for, end, offer, offer_of, or_else, provider, spec,
        },
    };

    const CHAT: Endpoints = Endpoints::only(Endpoint::ChatCompletions);
    const MESSAGES: Endpoints = Endpoints::only(Endpoint::Messages);

    fn sized(number: u128, size: u64) -> JobSpec {
        JobSpec { size, ..spec(number) }
    }

    #[test]
    fn unknown_is_refused_and_known_but_absent_waits() {
        let mut bench = Bench::new();
        let unknown = JobSpec { known: false, ..spec(1) };
        assert_eq!(bench.submit(unknown), [end(1, Ending::NoProvider)]);
        assert_eq!(bench.submit(spec(2)), []);
        assert_eq!(bench.join(1, offer(1)), [assign(2, 1, 0)]);
    }

    #[test]
    fn a_draining_provider_still_counts_as_serving() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.drain(1, SECOND);
        assert_eq!(bench.submit(JobSpec { known: false, ..spec(1) }), []);
        assert_eq!(bench.wait(SECOND * 30), [end(1, Ending::QueueTimeout)]);
    }

    #[test]
    fn too_large_for_all_names_the_largest_limit() {
        let mut bench = Bench::new();
        bench.join(1, Offer { max_size: 10, ..offer(1) });
        bench.join(2, Offer { max_size: 20, ..offer(1) });
        assert_eq!(bench.submit(sized(1, 21)), [end(1, Ending::TooLarge { limit: 20 })]);
        assert_eq!(bench.submit(sized(2, 20)), [assign(2, 2, 0)]);
    }

    #[test]
    fn a_full_queue_refuses_but_not_who_can_be_served_at_once() {
        let mut bench = Bench::with(Config { max_queue_len: 2, ..Config::default() });
        bench.join(1, Offer { max_size: 10, ..offer(1) });
        bench.submit(sized(1, 1));
        for (number, key) in [(2, "a"), (3, "b")] {
            assert_eq!(bench.submit(JobSpec { key: key.into(), ..sized(number, 5) }), []);
        }
        let full = end(4, Ending::QueueFull { retry_after: SECOND * 30 });
        assert_eq!(bench.submit(JobSpec { key: "c".into(), ..sized(4, 5) }), [full]);
        bench.finished(1, 1, Verdict::Answered);
        assert_eq!(bench.dispatcher.queue_depth(), 1);
        bench.join(2, offer(2));
        assert_eq!(bench.dispatcher.queue_depth(), 0);
        assert_eq!(bench.submit(sized(5, 50)), [assign(5, 2, 0)]);
    }

    #[test]
    fn a_key_fills_at_most_half_of_the_places_rounded_up() {
        let mut bench = Bench::with(Config { max_queue_len: 5, ..Config::default() });
        for number in 1..=3 {
            assert_eq!(bench.submit(spec(number)), []);
        }
        assert!(matches!(bench.submit(spec(4))[..], [Output::End { .. }]));
        assert_eq!(bench.submit(JobSpec { key: "other".into(), ..spec(5) }), []);
    }

    #[test]
    fn bytes_and_number_of_queues_are_bounded() {
        let config = Config { max_queued_bytes: 10, max_queues: 2, ..Config::default() };
        let mut bench = Bench::with(config);
        assert_eq!(bench.submit(sized(1, 6)), []);
        assert!(matches!(bench.submit(sized(2, 5))[..], [Output::End { .. }]));
        assert!(matches!(bench.submit(sized(3, u64::MAX))[..], [Output::End { .. }]));
        assert_eq!(bench.submit(JobSpec { model: "n".into(), ..sized(4, 4) }), []);
        let third = JobSpec { model: "o".into(), ..sized(5, 0) };
        assert!(matches!(bench.submit(third.clone())[..], [Output::End { .. }]));
        bench.client_gone(4);
        assert_eq!(bench.submit(third), []);
    }

    #[test]
    fn retry_after_follows_service_time_length_and_capacity() {
        let mut bench = Bench::with(Config { max_queue_len: 6, ..Config::default() });
        bench.join(1, offer(2));
        for number in 1..=4 {
            bench.submit(spec(number));
        }
        bench.wait(SECOND * 3);
        bench.finished(1, 1, Verdict::Answered);
        for number in 5..=6 {
            assert_eq!(bench.submit(spec(number)), []);
        }
        // Three wait, each takes 3 s, two are served at a time: 4.5 s, rounded up.
        let full = Ending::QueueFull { retry_after: SECOND * 5 };
        assert_eq!(bench.submit(spec(7)), [end(7, full)]);
    }

    #[test]
    fn a_model_that_is_served_in_no_shape_of_the_job_is_not_served() {
        let mut bench = Bench::new();
        bench.join(1, Offer { endpoints: MESSAGES, max_size: 0, ..offer(1) });
        assert_eq!(bench.submit(spec(1)), [end(1, Ending::NotServed)]);
        bench.join(2, Offer { endpoints: CHAT, max_size: 10, ..offer(1) });
        let large = end(2, Ending::TooLarge { limit: 10 });
        assert_eq!(bench.submit(sized(2, 11)), [large], "among those whose shape fits");
        let pinned = JobSpec { pinned: Some(provider(1)), ..spec(3) };
        assert_eq!(bench.submit(pinned), [end(3, Ending::NotServed)]);
        assert!(matches!(bench.submit(spec(4))[..], [Output::Assign { .. }]));
    }

    #[test]
    fn the_shapes_of_a_model_are_those_of_all_who_are_open_for_it() {
        let mut bench = Bench::new();
        bench.join(1, Offer { endpoints: CHAT, ..offer(1) });
        bench.join(2, Offer { endpoints: MESSAGES, ..offer(1) });
        bench.join(3, Offer { endpoints: Endpoints::ASSUMED, ..offer_of(&["n"]) });
        let shapes = |bench: &Bench| {
            let server = base::Scope::server();
            bench.dispatcher.endpoints_of(&server, &"m".into(), Route::PreferLocal)
        };
        assert_eq!(shapes(&bench), CHAT.union(MESSAGES));
        bench.drain(1, SECOND);
        assert_eq!(shapes(&bench), MESSAGES);
    }

    #[test]
    fn a_served_model_goes_before_one_that_may_come() {
        let mut bench = Bench::new();
        bench.join(1, offer_of(&["n"]));
        assert_eq!(bench.submit(or_else(1, &["o", "n"])), [assign_for(1, 1, "n", 0)]);
        assert_eq!(bench.submit(or_else(2, &["o"])), [], "nobody serves either");
        assert_eq!(
            bench.join(2, offer_of(&["o"])),
            [assign_for(2, 2, "o", 0)],
            "who is here first"
        );
        assert_eq!(bench.submit(or_else(3, &["p"])), []);
        assert_eq!(bench.join(3, offer(1)), [assign(3, 3, 0)]);
    }

    #[test]
    fn a_draining_provider_is_passed_over_for_another_model() {
        let mut bench = Bench::new();
        bench.join(1, offer(1));
        bench.drain(1, SECOND);
        bench.join(2, offer_of(&["n"]));
        assert_eq!(bench.submit(or_else(1, &["n"])), [assign_for(1, 2, "n", 0)]);
    }

    #[test]
    fn a_job_that_no_model_can_have_ends_as_for_its_first() {
        let mut bench = Bench::new();
        bench.join(1, Offer { max_size: 10, ..offer(1) });
        let unknown = |number| JobSpec { known: false, size: 11, ..or_else(number, &["n"]) };
        let large = Ending::TooLarge { limit: 10 };
        assert_eq!(bench.submit(unknown(1)), [end(1, large.clone())]);
        let known = JobSpec { known: true, ..unknown(2) };
        assert_eq!(bench.submit(known), [], "another may come for the second");
        bench.join(2, offer_of(&["n"]));
        assert_eq!(bench.submit(unknown(3)), [], "is served, though not now");
        bench.leave(2);
        assert_eq!(bench.submit(unknown(4)), [end(4, large)]);
    }

    #[test]
    fn a_full_queue_sends_on_to_the_next_model() {
        let mut bench = Bench::with(Config { max_queue_len: 2, ..Config::default() });
        bench.join(1, offer(1));
        bench.join(2, offer_of(&["n"]));
        let fill = |bench: &mut Bench| {
            bench.submit(spec(1));
            bench.submit(spec(2));
        };
        fill(&mut bench);
        assert_eq!(bench.submit(or_else(3, &["o", "n"])), [assign_for(3, 2, "n", 0)]);
        assert_eq!(bench.submit(or_else(4, &["n"])), [], "waits for the second");
        let full = bench.submit(or_else(5, &["n"]));
        assert!(matches!(full[..], [Output::End { ending: Ending::QueueFull { .. }, .. }]));
        assert_eq!(bench.finished(3, 2, Verdict::Answered), [assign_for(4, 2, "n", 0)]);
    }

    #[test]
    fn nobody_falls_back_while_the_server_stops() {
        let mut bench = Bench::new();
        bench.join(1, offer_of(&["n"]));
        bench.input(Input::Shutdown);
        assert_eq!(bench.submit(or_else(1, &["n"])), [end(1, Ending::ShuttingDown)]);
    }
}
