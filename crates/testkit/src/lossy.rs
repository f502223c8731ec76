//! A pipe in memory that delays, loses and reorders, mended by a small resend layer.
//!
//! Under paused time a seed gives the same history every time. A message is a packet with a
//! number; each packet and each acknowledgement travels on its own, takes a time of its own, and
//! may be lost. The sender resends what is not acknowledged, the receiver drops what it has and
//! holds what came too early: so messages arrive once each, in order, or not at all when an end
//! is dropped.

use std::{collections::BTreeMap, time::Duration};

use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    time::{Instant, sleep, sleep_until},
};

use crate::random::Random;

/// The shortest and the longest time that a packet takes.
const LATENCY: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(80)];

/// After this long without an acknowledgement a packet is sent again.
const RESEND: Duration = Duration::from_millis(200);

/// How far the newest packet may be ahead of the oldest unacknowledged one.
const WINDOW: usize = 32;

/// The sending end. Dropping it closes the pipe once all that was sent has arrived.
#[derive(Debug, Clone)]
pub struct LossySender<T>(Sender<T>);

impl<T> LossySender<T> {
    /// Sends a message; waits while too many are on their way.
    ///
    /// # Errors
    /// With the message, when the receiver is gone.
    pub async fn send(&self, message: T) -> Result<(), T> {
        self.0.send(message).await.map_err(|refused| refused.0)
    }

    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

#[derive(Debug)]
pub struct LossyReceiver<T>(Receiver<T>);

impl<T> LossyReceiver<T> {
    /// The next message; nothing when every sender is gone and all has arrived.
    pub async fn recv(&mut self) -> Option<T> {
        self.0.recv().await
    }
}

/// One side of a pipe that goes both ways: it sends `A` and receives `B`.
#[derive(Debug)]
pub struct LossyEnd<A, B> {
    pub sender: LossySender<A>,
    pub receiver: LossyReceiver<B>,
}

/// A pipe one way. `loss` is the probability, below 1.0, that a packet gets lost. It lives on the
/// current tokio runtime, whose time should be paused.
pub fn lossy_pipe<T>(seed: u64, loss: f64) -> (LossySender<T>, LossyReceiver<T>)
where
    T: Clone + Send + 'static,
{
    let mut random = Random::new(seed);
    let (to_sender, messages) = mpsc::channel(WINDOW);
    let (delivered, to_receiver) = mpsc::channel(WINDOW);
    // Packets on the way are bounded by the window and by how often each is resent meanwhile.
    let (packets_in, packets_out) = mpsc::channel(WINDOW * 4);
    let (acks_in, acks_out) = mpsc::channel(WINDOW * 4);
    let packets = Net { far: packets_in, random: random.fork(), loss };
    let acks = Net { far: acks_in, random: random.fork(), loss };
    tokio::spawn(send_all(messages, packets, acks_out));
    tokio::spawn(receive_all(packets_out, acks, delivered));
    (LossySender(to_sender), LossyReceiver(to_receiver))
}

pub fn lossy_pair<A, B>(seed: u64, loss: f64) -> (LossyEnd<A, B>, LossyEnd<B, A>)
where
    A: Clone + Send + 'static,
    B: Clone + Send + 'static,
{
    let (there, at_right) = lossy_pipe(seed, loss);
    let (back, at_left) = lossy_pipe(!seed, loss);
    (LossyEnd { sender: there, receiver: at_left }, LossyEnd { sender: back, receiver: at_right })
}

/// A network that delays each thing by a time of its own, and loses some.
struct Net<P> {
    far: Sender<P>,
    random: Random,
    loss: f64,
}

impl<P: Send + 'static> Net<P> {
    fn transmit(&mut self, packet: P) {
        let spread = (LATENCY[1] - LATENCY[0]).as_micros() as u64;
        let latency = LATENCY[0] + Duration::from_micros(self.random.below(spread));
        if self.random.chance(self.loss) {
            return;
        }
        let far = self.far.clone();
        tokio::spawn(async move {
            sleep(latency).await;
            // A full queue at the far end is one more way to get lost.
            let _lost = far.try_send(packet);
        });
    }
}

/// A numbered message, or the end of them.
type Packet<T> = (u64, Option<T>);

async fn send_all<T: Clone + Send + 'static>(
    mut messages: Receiver<T>,
    mut net: Net<Packet<T>>,
    mut acks: Receiver<u64>,
) {
    let mut unacknowledged: BTreeMap<u64, (Option<T>, Instant)> = BTreeMap::new();
    let (mut next, mut ended) = (0, false);
    while !ended || !unacknowledged.is_empty() {
        // Counted from the oldest, so that what comes early at the far end is bounded, too.
        let oldest = unacknowledged.keys().next().copied().unwrap_or(next);
        let due = unacknowledged.values().map(|(_, due)| *due).min();
        let resend = sleep_until(due.unwrap_or_else(Instant::now));
        tokio::select! {
            biased;
            ack = acks.recv() => match ack {
                Some(number) => { unacknowledged.remove(&number); }
                None => return,
            },
            message = messages.recv(), if !ended && next < oldest + WINDOW as u64 => {
                ended = message.is_none();
                net.transmit((next, message.clone()));
                unacknowledged.insert(next, (message, Instant::now() + RESEND));
                next += 1;
            }
            () = resend, if due.is_some() => resend_due(&mut unacknowledged, &mut net),
        }
    }
}

fn resend_due<T: Clone + Send + 'static>(
    unacknowledged: &mut BTreeMap<u64, (Option<T>, Instant)>,
    net: &mut Net<Packet<T>>,
) {
    let now = Instant::now();
    for (number, (message, due)) in unacknowledged.iter_mut().filter(|(_, (_, due))| *due <= now) {
        net.transmit((*number, message.clone()));
        *due = now + RESEND;
    }
}

async fn receive_all<T: Send + 'static>(
    mut packets: Receiver<Packet<T>>,
    mut acks: Net<u64>,
    delivered: Sender<T>,
) {
    let mut early = BTreeMap::new();
    let (mut expected, mut ended) = (0, false);
    loop {
        tokio::select! {
            () = delivered.closed(), if !ended => return,
            packet = packets.recv() => {
                let Some((number, message)) = packet else { return };
                acks.transmit(number);
                if number >= expected {
                    early.insert(number, message);
                }
            }
        }
        while let Some(message) = early.remove(&expected) {
            expected += 1;
            ended = message.is_none();
            if let Some(message) = message
                && delivered.send(message).await.is_err()
            {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_arrive_once_each_and_in_order_whatever_is_lost() {
        for seed in 0..20 {
            let (sender, mut receiver) = lossy_pipe(seed, 0.4);
            tokio::spawn(async move {
                for number in 0..500 {
                    sender.send(number).await.unwrap();
                }
            });
            for number in 0..500 {
                assert_eq!(receiver.recv().await, Some(number), "seed {seed}");
            }
            assert_eq!(receiver.recv().await, None, "seed {seed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_seed_gives_its_history_again() {
        let mut times = Vec::new();
        for _ in 0..2 {
            let start = Instant::now();
            let (sender, mut receiver) = lossy_pipe(7, 0.5);
            sender.send("one").await.unwrap();
            sender.send("two").await.unwrap();
            receiver.recv().await.unwrap();
            receiver.recv().await.unwrap();
            times.push(start.elapsed());
        }
        assert_eq!(times[0], times[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_is_told_that_nobody_receives() {
        let (left, right) = lossy_pair::<u8, u8>(3, 0.2);
        drop(right);
        crate::within("closing", left.sender.closed()).await;
        assert_eq!(left.sender.send(1).await, Err(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_does_not_read_holds_its_sender_up() {
        let (sender, receiver) = lossy_pipe(5, 0.1);
        let mut sent = 0;
        while tokio::time::timeout(Duration::from_secs(60), sender.send(sent)).await.is_ok() {
            sent += 1;
        }
        // Two channels, the window, and at the far end what came early and what is being delivered.
        assert!(sent <= 4 * WINDOW + 1, "{sent} were taken");
        drop(receiver);
    }
}
