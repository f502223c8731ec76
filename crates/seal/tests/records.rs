//! Whatever is done to records on their way: what arrives is what was sent, or nothing.
#![allow(clippy::unwrap_used, reason = "tests may stop at the first surprise")]

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::Index};
use seal::{Identity, Initiator, Opener, Responder, Sealer};

/// The sealer of one end, and the opener of the other.
fn link() -> (Sealer, Opener) {
    let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let mut initiator = Initiator::new(&one, &other.node_id(), None, b"test").unwrap();
    let mut responder = Responder::new(&other, None, b"test").unwrap();
    responder.read(&initiator.write(b"").unwrap(), &one.node_id()).unwrap();
    let (answer, sealed) = responder.finish(b"").unwrap();
    (initiator.finish(&answer).unwrap().0.split().0, sealed.split().1)
}

/// The ciphertexts in a stream of ordered records.
fn cut(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((head, rest)) = stream.split_first_chunk() {
        let (record, later) = rest.split_at(u32::from_be_bytes(*head) as usize);
        records.push(record.to_vec());
        stream = later;
    }
    records
}

fn ordered(sealer: &mut Sealer, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut stream = Vec::new();
    payloads.iter().for_each(|payload| sealer.payload(payload, &mut stream).unwrap());
    cut(&stream)
}

fn counted(sealer: &mut Sealer, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    payloads.iter().flat_map(|payload| sealer.counted_pieces(payload).unwrap()).collect()
}

/// Payloads around the lengths at which they are cut.
fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let lengths = prop_oneof![
        3 => 0..40_usize,
        1 => 61_430..61_450_usize,
        1 => 65_510..65_530_usize,
        1 => 122_870..200_000_usize
    ];
    vec((lengths, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]), 1..6)
}

/// The harm that somebody between the two ends may do to the records.
#[derive(Debug, Clone)]
enum Harm {
    Flip(Index, Index, u8),
    Truncate(Index, Index),
    Extend(Index, Vec<u8>),
    Drop(Index),
    Swap(Index, Index),
    Repeat(Index, Index),
    Invent(Index, Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    prop_oneof![
        (at(), at(), 1..=u8::MAX).prop_map(|(record, byte, with)| Harm::Flip(record, byte, with)),
        (at(), at()).prop_map(|(record, length)| Harm::Truncate(record, length)),
        (at(), vec(any::<u8>(), 1..40)).prop_map(|(record, tail)| Harm::Extend(record, tail)),
        at().prop_map(Harm::Drop),
        (at(), at()).prop_map(|(one, other)| Harm::Swap(one, other)),
        (at(), at()).prop_map(|(record, to)| Harm::Repeat(record, to)),
        (at(), vec(any::<u8>(), 0..200)).prop_map(|(to, record)| Harm::Invent(to, record)),
    ]
}

impl Harm {
    fn apply(&self, records: &mut Vec<Vec<u8>>) {
        let count = records.len();
        if count == 0 {
            return;
        }
        match self {
            Self::Flip(record, byte, with) => {
                let record = &mut records[record.index(count)];
                if !record.is_empty() {
                    let byte = byte.index(record.len());
                    record[byte] ^= with;
                }
            }
            Self::Truncate(record, length) => {
                let record = &mut records[record.index(count)];
                record.truncate(length.index(record.len() + 1));
            }
            Self::Extend(record, tail) => records[record.index(count)].extend_from_slice(tail),
            Self::Drop(record) => drop(records.remove(record.index(count))),
            Self::Swap(one, other) => records.swap(one.index(count), other.index(count)),
            Self::Repeat(record, to) => {
                let record = records[record.index(count)].clone();
                records.insert(to.index(count + 1), record);
            }
            Self::Invent(to, record) => records.insert(to.index(count + 1), record.clone()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn payloads_of_any_length_arrive_in_order(payloads in payloads()) {
        let (mut sealer, mut opener) = link();
        let records = ordered(&mut sealer, &payloads);
        let arrived: Vec<Bytes> =
            records.iter().filter_map(|record| opener.record(record).unwrap()).collect();
        prop_assert_eq!(&arrived, &payloads);
        let (mut sealer, mut opener) = link();
        let records = counted(&mut sealer, &payloads);
        let arrived: Vec<Bytes> =
            records.iter().filter_map(|record| opener.counted(record).unwrap()).collect();
        prop_assert_eq!(&arrived, &payloads);
    }

    #[test]
    fn an_ordered_stream_that_was_harmed_gives_its_unharmed_beginning(
        payloads in payloads(),
        harms in vec(harm(), 1..4),
    ) {
        let (mut sealer, mut opener) = link();
        let mut records = ordered(&mut sealer, &payloads);
        harms.iter().for_each(|harm| harm.apply(&mut records));
        let mut arrived = Vec::new();
        for record in &records {
            match opener.record(record) {
                Ok(payload) => arrived.extend(payload),
                Err(_) => break,
            }
        }
        prop_assert!(arrived.len() <= payloads.len());
        prop_assert_eq!(&arrived, &payloads[..arrived.len()]);
    }

    #[test]
    fn of_counted_records_that_were_harmed_whole_payloads_arrive_in_order_and_once(
        payloads in payloads(),
        harms in vec(harm(), 1..6),
    ) {
        let (mut sealer, mut opener) = link();
        let numbered = payloads.iter().zip(0_u8..).map(|(payload, number)| {
            [&[number][..], payload].concat()
        });
        let payloads: Vec<_> = numbered.collect();
        let mut records = counted(&mut sealer, &payloads);
        harms.iter().for_each(|harm| harm.apply(&mut records));
        let arrived: Vec<_> =
            records.iter().filter_map(|record| opener.counted(record).ok().flatten()).collect();
        let mut sent = payloads.iter();
        for payload in &arrived {
            prop_assert!(sent.any(|it| it == payload), "not sent, or not at this place");
        }
        // Nothing is lost but that record: later ones arrive.
        let last = sealer.counted(b"afterwards").unwrap();
        prop_assert_eq!(opener.counted(&last).unwrap().unwrap(), "afterwards");
    }

    #[test]
    fn garbage_is_refused_by_everything_that_reads(garbage in vec(any::<u8>(), 0..400)) {
        prop_assert!(link().1.record(&garbage).is_err());
        prop_assert!(link().1.counted(&garbage).is_err());
        let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
        let mut responder = Responder::new(&other, None, b"").unwrap();
        prop_assert!(responder.read(&garbage, &one.node_id()).is_err());
        let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
        initiator.write(b"").unwrap();
        prop_assert!(initiator.finish(&garbage).is_err());
    }

    #[test]
    fn a_handshake_that_was_changed_anywhere_does_not_open(
        byte in any::<Index>(),
        with in 1..=u8::MAX,
        answer in any::<bool>(),
    ) {
        let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
        let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
        let mut responder = Responder::new(&other, None, b"").unwrap();
        let mut first = initiator.write(b"hello").unwrap();
        if !answer {
            let byte = byte.index(first.len());
            first[byte] ^= with;
            prop_assert!(responder.read(&first, &one.node_id()).is_err());
            return Ok(());
        }
        responder.read(&first, &one.node_id()).unwrap();
        let (mut second, _) = responder.finish(b"helloAck").unwrap();
        let byte = byte.index(second.len());
        second[byte] ^= with;
        prop_assert!(initiator.finish(&second).is_err());
    }
}
