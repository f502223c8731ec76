//! Single steps, and what each end answers in them.

use super::super::{
    Arrival, ArrivalFact, ArrivalInput as ToArrival, ArrivalOutput as FromArrival, Departure,
    DepartureFact, DepartureInput as ToDeparture, DepartureOutput as FromDeparture, Word,
};

#[test]
fn a_session_leaves_only_when_the_other_end_has_staged_it_and_that_is_stored() {
    let mut departure = Departure::begin();
    assert_eq!(departure.handle(ToDeparture::Prepared), [], "nothing was sent");
    assert_eq!(departure.handle(ToDeparture::Frozen), [FromDeparture::Send]);
    let keep = [FromDeparture::Keep(DepartureFact::Left)];
    assert_eq!(departure.handle(ToDeparture::Prepared), keep);
    assert_eq!(departure.word(), Word::Undecided, "it is not stored");
    assert_eq!(departure.handle(ToDeparture::GaveUp), [], "it is too late");
    assert_eq!(departure.handle(ToDeparture::Kept(true)), [FromDeparture::Leave]);
    assert_eq!(departure.word(), Word::Take);
    let keep = [FromDeparture::Keep(DepartureFact::Dropped)];
    assert_eq!(departure.handle(ToDeparture::Taken), keep);
    assert_eq!(departure.handle(ToDeparture::Kept(true)), [FromDeparture::Gone]);
    assert!(departure.is_over());
}

#[test]
fn a_session_that_has_left_runs_again_only_after_a_refusal_and_when_that_is_stored() {
    let mut departure = Departure::left();
    assert_eq!(departure.handle(ToDeparture::GaveUp), []);
    let keep = [FromDeparture::Keep(DepartureFact::Returned)];
    assert_eq!(departure.handle(ToDeparture::Refused), keep);
    assert_eq!(departure.handle(ToDeparture::Kept(false)), [], "the other end is asked again");
    assert!(departure.has_left());
    assert_eq!(departure.handle(ToDeparture::Refused), keep);
    assert_eq!(departure.handle(ToDeparture::Kept(true)), [FromDeparture::Run]);
}

#[test]
fn a_session_is_taken_only_when_its_version_says_so() {
    let mut arrival = Arrival::begin();
    assert_eq!(arrival.handle(ToArrival::Ours), [], "it is not whole");
    assert_eq!(arrival.handle(ToArrival::Whole), [FromArrival::Keep(ArrivalFact::Staged)]);
    let prepared = [FromArrival::Expect, FromArrival::SayPrepared];
    assert_eq!(arrival.handle(ToArrival::Kept(true)), prepared);
    assert_eq!(arrival.handle(ToArrival::Asked), [FromArrival::SayUndecided]);
    assert_eq!(arrival.handle(ToArrival::Ours), [FromArrival::Keep(ArrivalFact::Taken)]);
    assert_eq!(arrival.handle(ToArrival::Kept(true)), [FromArrival::Run]);
    assert_eq!(arrival.handle(ToArrival::Asked), [FromArrival::SayTaken]);
    assert_eq!(arrival.handle(ToArrival::Aborted), [FromArrival::Keep(ArrivalFact::Forgotten)]);
    assert_eq!(arrival.handle(ToArrival::Kept(true)), []);
    assert!(arrival.is_over());
}

#[test]
fn a_refusal_is_said_only_when_it_is_stored() {
    for mut arrival in [Arrival::unknown(), Arrival::stored(ArrivalFact::Staged)] {
        assert_eq!(arrival.handle(ToArrival::Lost), [FromArrival::Keep(ArrivalFact::Refused)]);
        assert_eq!(arrival.handle(ToArrival::Asked), [FromArrival::SayUndecided]);
        let refused = [FromArrival::Remove, FromArrival::SayRefused];
        assert_eq!(arrival.handle(ToArrival::Kept(true)), refused);
        assert_eq!(arrival.handle(ToArrival::Ours), [], "never by this move");
        assert_eq!(arrival.handle(ToArrival::Asked), [FromArrival::SayRefused]);
        arrival.handle(ToArrival::Aborted);
        let forgotten = arrival.handle(ToArrival::Kept(true));
        assert_eq!(forgotten, [FromArrival::Unexpect], "its owner has it back");
    }
}

#[test]
fn what_cannot_be_stored_is_tried_again() {
    let mut arrival = Arrival::stored(ArrivalFact::Staged);
    for _ in 0..2 {
        assert_eq!(arrival.handle(ToArrival::Ours), [FromArrival::Keep(ArrivalFact::Taken)]);
        assert_eq!(arrival.handle(ToArrival::Kept(false)), [FromArrival::SayUndecided]);
    }
    for _ in 0..2 {
        let keep = [FromArrival::Keep(ArrivalFact::Forgotten)];
        assert_eq!(arrival.handle(ToArrival::Aborted), keep);
        assert_eq!(arrival.handle(ToArrival::Kept(false)), []);
    }
    assert!(arrival.is_staged());
    let mut unknown = Arrival::unknown();
    for input in [ToArrival::Lost, ToArrival::Asked] {
        assert_eq!(unknown.handle(input), [FromArrival::Keep(ArrivalFact::Refused)]);
        assert_eq!(unknown.handle(ToArrival::Kept(false)), [FromArrival::SayUndecided]);
    }
}
