//! A server's streams: answers that come to the home of a job, and jobs that are served for fellows.

use std::time::Duration;

use base::{JobId, ProviderId};
use bytes::Bytes;
use dispatch::Verdict;
use fleet::{
    Frame, ServerId, Stream, StreamId, lending,
    stream::{self, Reason, ended::Answer},
};

use crate::{
    exchange::{Exchange, Request, Side},
    net::{Event, Net, Outcome},
    server::{MOST_SHORT, Server, spec},
};

/// How long what was sent may be under way, at most, for the lender's margin to cover it.
const COVERED: Duration = lending::MARGIN;

impl Server {
    pub(crate) fn frame(&mut self, net: &mut Net, from: ServerId, bytes: Bytes) {
        let now = self.now(net);
        let Ok(frame) = Frame::decode(bytes) else { return net.fail("a bad frame".to_owned()) };
        if let Some(it) = self.exchanges.get_mut(&frame.stream) {
            return it.stream.handle(now, frame);
        }
        match self.ended.answer(now, &frame) {
            Answer::Open => {
                let id = frame.stream;
                let Some(stream) = Stream::accept_under(now, frame, net.mutant.rules) else {
                    return;
                };
                let side = Side::Asked { request: Vec::new() };
                self.exchanges.insert(id, Exchange { peer: from, stream, side });
            }
            Answer::Reply(frame) => self.send_frame(net, from, &frame),
            Answer::Silence => {}
        }
    }

    fn send_frame(&mut self, net: &mut Net, to: ServerId, frame: &Frame) {
        net.send(self.node, to, Event::Frame { from: self.id, to, bytes: frame.encode() });
    }

    /// Carries out what the streams put out. Returns whether there was anything.
    pub(crate) fn exchange(&mut self, net: &mut Net) -> bool {
        let now = self.now(net);
        let mut busy = false;
        for id in self.exchanges.keys().copied().collect::<Vec<_>>() {
            if let Some(it) = self.exchanges.get_mut(&id) {
                it.write(now);
            }
            while let Some(output) =
                self.exchanges.get_mut(&id).and_then(|it| it.stream.poll_output())
            {
                busy = true;
                self.streamed(net, id, output);
            }
            self.finish_served(net, id);
            let is_over = self.exchanges.get(&id).is_some_and(|it| it.stream.is_over());
            if let Some(it) = self.exchanges.get(&id).filter(|_| is_over) {
                self.ended.note(now, &it.stream);
                self.dropped(net, id);
                busy = true;
            }
        }
        busy
    }

    pub(crate) fn streamed(&mut self, net: &mut Net, id: StreamId, output: stream::Output) {
        let Some(it) = self.exchanges.get_mut(&id) else { return };
        let peer = it.peer;
        match output {
            stream::Output::Send(frame) => {
                net.account.resent += u64::from(frame.kind == stream::Kind::Missing);
                self.send_frame(net, peer, &frame);
            }
            stream::Output::Data(bytes) => self.data(net, id, &bytes),
            stream::Output::End => self.ended_by_peer(net, id),
            stream::Output::Done => {}
            stream::Output::Reset(reason, _) => {
                net.account.resets += 1;
                if reason == Reason::Silent {
                    net.unease(self.id);
                }
                if let Side::Home { job, provider, .. } = it.side {
                    let refused = reason == Reason::Refused;
                    let verdict = if refused { Verdict::Declined } else { Verdict::Failed };
                    self.finished(net, job, provider, verdict);
                }
            }
        }
    }

    /// A stream is over: a job that is served for it ends.
    fn dropped(&mut self, net: &mut Net, id: StreamId) {
        let now = self.now(net);
        let Some(it) = self.exchanges.remove(&id) else { return };
        if let Side::Home { .. } = it.side {
            net.at_home.remove(&id);
        }
        if let Side::Serving { job, .. } = it.side {
            self.dispatcher.handle(now, dispatch::Input::ClientGone { job });
            self.lending.handle(now, lending::Input::Ended { job });
        }
    }

    fn data(&mut self, net: &mut Net, id: StreamId, bytes: &Bytes) {
        let now = self.now(net);
        let Some(it) = self.exchanges.get_mut(&id) else { return };
        match &mut it.side {
            Side::Home { job, got, .. } => {
                let job = *job;
                if !Request::is_part(job, *got, bytes) {
                    net.fail(format!("{job} has other bytes than were written, from {got}"));
                }
                *got += bytes.len() as u64;
                self.dispatcher.handle(now, dispatch::Input::Begun { job, resumable: None });
                let after = Duration::from_millis(net.stream.below(4) * net.stream.below(100));
                let at = self.id;
                net.plan(after, Event::Read { at, stream: id, bytes: bytes.len() });
            }
            Side::Asked { request } => {
                request.extend_from_slice(bytes);
                it.stream.consumed(now, bytes.len());
            }
            Side::Serving { .. } => net.fail("more than the request".to_owned()),
        }
    }

    fn ended_by_peer(&mut self, net: &mut Net, id: StreamId) {
        let Some(it) = self.exchanges.get_mut(&id) else { return };
        match &mut it.side {
            Side::Home { job, provider, got, ended } => {
                let (job, provider, got) = (*job, *provider, *got);
                *ended = true;
                let bytes = net.jobs.get(&job).map_or(0, |it| it.bytes);
                if got != bytes {
                    net.fail(format!("{job} ended well with {got} of {bytes} bytes"));
                }
                if self.is_held(job, provider) {
                    net.conclude(job, Outcome::Answered);
                }
                self.finished(net, job, provider, Verdict::Answered);
            }
            Side::Asked { request } => {
                let Some((request, sent)) = Request::decode(request) else {
                    return net.fail("a bad request".to_owned());
                };
                self.serve(net, id, &request, sent);
            }
            Side::Serving { .. } => {}
        }
    }

    fn is_held(&self, job: JobId, provider: ProviderId) -> bool {
        let view = self.dispatcher.provider(provider);
        view.is_some_and(|view| view.jobs().any(|other| other == job))
    }

    fn finished(&mut self, net: &mut Net, job: JobId, provider: ProviderId, verdict: Verdict) {
        let now = self.now(net);
        let input = dispatch::Input::Finished { job, provider, verdict, tokens: None };
        self.dispatcher.handle(now, input);
    }

    /// A fellow asks for a job.
    fn serve(&mut self, net: &mut Net, id: StreamId, request: &Request, sent: Duration) {
        let now = self.now(net);
        if !net.served.insert(id) {
            net.fail(format!("{id:?} is served twice"));
        }
        let Some(peer) = self.exchanges.get(&id).map(|it| it.peer) else { return };
        let (job, provider) = (JobId::from_random(net.stream.wide()), request.provider);
        if !self.lending.begin(peer, provider, job) {
            net.account.refused += 1;
            net.say(|| format!("n{} refuses {id:?} of {peer}", self.node));
            let is_wanted = net.at_home.contains(&id) && net.now < sent + COVERED;
            if is_wanted && self.must_take(net, peer) {
                net.fail(format!(
                    "n{} refuses a job for which it lent a slot to {peer}",
                    self.node
                ));
            }
            let refused = self.exchanges.get_mut(&id);
            return refused.into_iter().for_each(|it| {
                it.stream.reset(now, Reason::Refused, Bytes::new());
            });
        }
        let Some(it) = self.exchanges.get_mut(&id) else { return };
        it.side = Side::serving(job, request);
        if self.short_since.is_some_and(|since| since + MOST_SHORT < net.now) {
            net.fail(format!("n{} takes a job of {peer} while own jobs wait", self.node));
        }
        let spec = spec(job, request.model, Some(provider));
        self.dispatcher.handle(now, dispatch::Input::Submit(spec));
    }

    /// Whether a job that a fellow sent just now must find the slot that was lent for it: the fellow was
    /// there all the time, and this server has no job of it that is over at its home.
    fn must_take(&self, net: &Net, fellow: ServerId) -> bool {
        let theirs = self.exchanges.iter().filter(|(_, it)| it.peer == fellow);
        let mut served = theirs.filter(|(_, it)| matches!(it.side, Side::Serving { .. }));
        let calm = net.is_calm(self.id) && net.is_calm(fellow) && net.had(self.id, fellow);
        calm && served.all(|(id, _)| net.at_home.contains(id))
    }

    /// The worker has finished a fellow's job when all is written.
    fn finish_served(&mut self, net: &mut Net, id: StreamId) {
        let Some(it) = self.exchanges.get_mut(&id) else { return };
        if let Some(job) = it.side.take_written() {
            self.note_answered(net, job);
        }
    }
}
