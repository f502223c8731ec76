//! The watchers to wake at the next event.

use std::task::Waker;

use super::Form;

/// The watchers of a log, by the form that they read.
#[derive(Default)]
pub(super) struct Watchers([Slots; Form::COUNT]);

/// The slots of watchers; a waiting watcher has its waker in its slot.
#[derive(Default)]
struct Slots {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Watchers {
    /// Adds a watcher. Returns its slot.
    pub(super) fn enter(&mut self, form: Form) -> usize {
        let slots = &mut self.0[form.index()];
        slots.free.pop().unwrap_or_else(|| {
            slots.wakers.push(None);
            slots.wakers.len() - 1
        })
    }

    /// Removes a watcher. Drop the returned waker while no lock is held: it may be the last
    /// reference to a whole task.
    #[must_use]
    pub(super) fn leave(&mut self, form: Form, place: usize) -> Option<Waker> {
        let slots = &mut self.0[form.index()];
        let waker = slots.wakers.get_mut(place).and_then(Option::take);
        slots.free.push(place);
        // After a crowd has left, its memory is given back.
        if slots.free.len() == slots.wakers.len() {
            *slots = Slots::default();
        }
        waker
    }

    /// Stores the waker of a waiting watcher. Drop the returned waker while no lock is held.
    #[must_use]
    pub(super) fn wait(&mut self, form: Form, place: usize, waker: &Waker) -> Option<Waker> {
        let slot = self.0[form.index()].wakers.get_mut(place)?;
        match slot {
            // The usual case: a clone of the same waker would cost two counts for each event.
            Some(old) if old.will_wake(waker) => None,
            _ => slot.replace(waker.clone()),
        }
    }

    /// Takes the wakers of all watchers that wait for an event in these forms.
    pub(super) fn take(&mut self, due: [bool; Form::COUNT]) -> Vec<Waker> {
        let slots = self.0.iter_mut().zip(due).filter_map(|(slots, due)| due.then_some(slots));
        slots.flat_map(|slots| &mut slots.wakers).filter_map(Option::take).collect()
    }

    /// The number of watchers of these forms, waiting or not.
    pub(super) fn count(&self, due: [bool; Form::COUNT]) -> usize {
        let slots = self.0.iter().zip(due).filter_map(|(slots, due)| due.then_some(slots));
        slots.map(|slots| slots.wakers.len() - slots.free.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [bool; Form::COUNT] = [true; Form::COUNT];

    #[test]
    fn only_watchers_of_the_form_are_woken_and_once() {
        let mut watchers = Watchers::default();
        let named = watchers.enter(Form::Named);
        let messages = watchers.enter(Form::Messages);
        let _idle = watchers.enter(Form::Messages);
        assert!(watchers.wait(Form::Named, named, Waker::noop()).is_none());
        assert!(watchers.wait(Form::Messages, messages, Waker::noop()).is_none());
        assert_eq!(watchers.count(ALL), 3);
        assert_eq!(watchers.take([true, false, true]).len(), 1);
        assert_eq!(watchers.take(ALL).len(), 1);
        assert_eq!(watchers.take(ALL).len(), 0);
    }

    #[test]
    fn a_place_is_used_again_and_all_memory_is_freed_with_the_last_watcher() {
        let mut watchers = Watchers::default();
        let first = watchers.enter(Form::Named);
        let second = watchers.enter(Form::Named);
        assert!(watchers.leave(Form::Named, first).is_none());
        assert_eq!(watchers.enter(Form::Named), first);
        assert!(watchers.leave(Form::Named, first).is_none());
        let _ = watchers.wait(Form::Named, second, Waker::noop());
        assert!(watchers.leave(Form::Named, second).is_some());
        assert_eq!(watchers.0[Form::Named.index()].wakers.capacity(), 0);
        assert_eq!(watchers.count(ALL), 0);
    }
}
