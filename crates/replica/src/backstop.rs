//! The last resort: members whose contexts are equal, and whose objects are not.
//!
//! By the rules this cannot happen, but a bug or a damaged disk can cause it. Then the two members
//! compare their keys, bucket by bucket. An object that one of them has noted and does not have
//! counts as deleted, and of two versions the greater stays. The case is reported as an error.

use std::collections::BTreeMap;

use crate::{
    dot::Dot,
    entry::Key,
    input::LinkId,
    message::{KeyList, MOST_ENTRIES, Message},
    notice::Notice,
    print::bucket,
    replica::Replica,
    table::Layer,
};

impl Replica {
    /// Compares a print that a member showed with the own one, if the contexts are equal.
    pub(crate) fn check_print(&mut self, link: LinkId, print: u128) {
        let Some(state) = self.links.get(&link) else { return };
        let shown = state.shown.as_ref();
        let is_level = shown.is_some_and(|shown| {
            shown.retired == self.knowledge.retired_hash() && self.knowledge.is(&shown.context)
        });
        if !is_level || print == self.table.print().total() {
            return;
        }
        let notice = Notice::Unequal { node: state.node.clone() };
        self.notice(notice.clone(), notice);
        self.send(link, Message::Buckets(self.table.print().buckets().to_vec()));
    }

    /// Answers with the keys of the buckets that differ, as many as one message may carry. The
    /// others follow after the next digest.
    pub(crate) fn on_buckets(&mut self, link: LinkId, prints: &[u128]) {
        let own = self.table.print().buckets();
        let unequal = (0..=u8::MAX)
            .filter(|number| prints.get(usize::from(*number)) != own.get(usize::from(*number)));
        let mut by_bucket: BTreeMap<u8, Vec<(Key, Dot)>> =
            unequal.map(|number| (number, Vec::new())).collect();
        for (key, dot) in self.live_dots() {
            let number = u8::try_from(bucket(&key)).unwrap_or_default();
            if let Some(list) = by_bucket.get_mut(&number) {
                list.push((key, dot));
            }
        }
        let mut list = KeyList { context: self.context(), buckets: Vec::new(), live: Vec::new() };
        for (number, keys) in by_bucket {
            if list.live.len() + keys.len() <= MOST_ENTRIES {
                list.buckets.push(number);
                list.live.extend(keys);
            }
        }
        self.send(link, Message::Keys(list.into()));
    }

    /// Drops the objects that the other member has noted and does not have, and sends those of
    /// which it has another version.
    pub(crate) fn on_keys(&mut self, link: LinkId, list: &KeyList) {
        let theirs: BTreeMap<&Key, Dot> = list.live.iter().map(|(key, dot)| (key, *dot)).collect();
        for (key, dot) in self.live_dots() {
            let number = u8::try_from(bucket(&key)).unwrap_or_default();
            if !list.buckets.contains(&number) || !list.context.has(dot) {
                continue;
            }
            match theirs.get(&key) {
                None => self.drop_object(&key),
                Some(their) if *their != dot => self.send_top(link, &key),
                Some(_) => {}
            }
        }
    }

    fn live_dots(&self) -> Vec<(Key, Dot)> {
        let tops = self.table.keys_after(None).filter_map(|key| Some((key, self.table.top(key)?)));
        let live = tops.filter(|(_, entry)| !entry.dead);
        live.map(|(key, entry)| (key.clone(), entry.dot)).collect()
    }

    fn drop_object(&mut self, key: &Key) {
        for layer in [Layer::Held, Layer::Present] {
            if self.table.at(layer, key).is_some() {
                self.put(layer, key, None);
            }
        }
        self.cut_answers();
    }

    fn send_top(&mut self, link: LinkId, key: &Key) {
        if let Some(entry) = self.table.top(key).cloned() {
            self.send(link, Message::Repair { key: key.clone(), entry });
        }
    }

    /// Takes in the other member's version of an object although its dot is noted already, if that
    /// version is greater.
    pub(crate) fn on_repair(&mut self, key: &Key, entry: &std::sync::Arc<crate::Entry>) {
        let is_greater = self.table.top(key).is_some_and(|top| entry.beats(top));
        if is_greater && self.knowledge.has(entry.dot) {
            let layer = if self.is_ahead(key, entry) { Layer::Held } else { Layer::Present };
            if self.fits(layer, key, entry) {
                self.put_version(layer, key, entry.clone());
            }
        }
    }
}
