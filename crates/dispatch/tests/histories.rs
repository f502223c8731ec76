//! Generated histories against the plain model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod history;

use proptest::{collection::vec, prelude::any, prelude::*};

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_history_breaks_a_rule(steps in vec(any::<history::Step>(), 0..400)) {
        history::run(&steps).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn long_histories_of_fixed_seeds_reach_everything() {
    let (mut requeued, mut fell_back, mut moved) = (0, 0, 0);
    let (mut unserved, mut overloaded, mut revoked) = (0, 0, 0);
    let (mut narrowed, mut tried, mut ceased) = (0, 0, 0);
    let (mut flipped, mut looked, mut gave_up_busy) = (0, 0, 0);
    let (mut unready, mut woken, mut kept, mut clouded) = (0, 0, 0, 0);
    let (mut patient, mut impatient) = (0, 0);
    let (mut lent, mut not_lent) = (0, 0);
    let (mut broken_off, mut resumed) = (0, 0);
    for seed in 0..24 {
        let account = history::run(&history::steps(seed, 3_000)).unwrap();
        assert_eq!(account.steps, 3_000);
        assert!(account.jobs > 500, "{account:?}");
        requeued += account.requeued;
        fell_back += account.fell_back;
        moved += account.moved;
        unserved += account.unserved;
        overloaded += account.overloaded;
        revoked += account.revoked;
        narrowed += account.narrowed;
        tried += account.tried;
        ceased += account.ceased;
        flipped += account.flipped;
        looked += account.looked;
        gave_up_busy += account.gave_up_busy;
        unready += account.unready;
        woken += account.woken;
        kept += account.kept;
        clouded += account.clouded;
        patient += account.patient;
        impatient += account.impatient;
        lent += account.lent;
        not_lent += account.not_lent;
        broken_off += account.broken_off;
        resumed += account.resumed;
    }
    assert!(requeued > 100 && fell_back > 100 && moved > 30, "{requeued} {fell_back} {moved}");
    assert!(unserved > 20 && revoked > 20, "{unserved} {revoked}");
    assert!(overloaded > 20, "{overloaded}");
    assert!(narrowed > 20 && tried > 5, "{narrowed} {tried}");
    assert!(clouded > 100, "{clouded}");
    assert!(patient > 100 && impatient > 100, "{patient} {impatient}");
    assert!(lent > 80 && not_lent > 300, "{lent} {not_lent}");
    assert!(broken_off > 100 && resumed > 50, "{broken_off} {resumed}");
    assert!(ceased > 20, "{ceased}");
    assert!(unready > 50 && woken > 10 && kept > 10, "{unready} {woken} {kept}");
    assert!(flipped > 100 && looked > 20 && gave_up_busy > 10, "{flipped} {looked} {gave_up_busy}");
}
