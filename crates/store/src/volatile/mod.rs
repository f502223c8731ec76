//! A store in memory, for tests and for defaults that store nothing.
//!
//! - `ledger`: plain sums
//! - `rooms`: rooms and participants

mod ledger;
mod rooms;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use base::{KeyId, ModelName, Scope};

use crate::{
    Action, AgeStore, AuditStore, Change, Fact, InvitationRecord, InvitationStore, KeyRecord,
    KeyStore, ModelStore, PageSessionRecord, PageSessionStore, ParticipantRecord, RoomRecord,
    SeenModel, StoreError, UsageAnswer, UsageEntry, UsageQuery, UsageStore, WorkspaceStore,
    audit::MAX_ACTIONS,
};

/// A store in memory.
#[derive(Default)]
pub struct VolatileStore {
    models: Mutex<HashMap<(Scope, ModelName), SeenModel>>,
    keys: Mutex<Vec<KeyRecord>>,
    invitations: Mutex<Vec<InvitationRecord>>,
    page_sessions: Mutex<Vec<PageSessionRecord>>,
    usage: Mutex<Vec<UsageEntry>>,
    audit: Mutex<VecDeque<Action>>,
    rooms: Mutex<Vec<RoomRecord>>,
    participants: Mutex<Vec<ParticipantRecord>>,
    /// The JSON of facts, by kind and id.
    facts: Mutex<BTreeMap<(String, String), String>>,
    reached: Mutex<Option<u64>>,
    failing: AtomicBool,
}

impl VolatileStore {
    /// Makes writes fail from now on, or succeed again.
    pub fn fail_writes(&self, fail: bool) {
        self.failing.store(fail, Ordering::Relaxed);
    }

    fn writes<'a, T>(&self, table: &'a Mutex<T>) -> Result<MutexGuard<'a, T>, StoreError> {
        if self.failing.load(Ordering::Relaxed) {
            return Err(StoreError::Database {
                path: "memory".to_owned(),
                hint: "it was told to fail",
                source: rusqlite::Error::InvalidQuery,
            });
        }
        Ok(lock(table))
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelStore for VolatileStore {
    fn load_models(&self) -> Result<Vec<SeenModel>, StoreError> {
        Ok(lock(&self.models).values().cloned().collect())
    }

    fn save_models(&self, models: &[SeenModel], oldest: u64) -> Result<(), StoreError> {
        let mut stored = self.writes(&self.models)?;
        for seen in models {
            stored.insert((seen.scope.clone(), seen.model.clone()), seen.clone());
        }
        stored.retain(|_, seen| seen.last >= oldest);
        Ok(())
    }
}

impl KeyStore for VolatileStore {
    fn load_keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let mut keys = lock(&self.keys).clone();
        keys.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(keys)
    }

    fn save_key(&self, key: &KeyRecord) -> Result<(), StoreError> {
        let mut keys = self.writes(&self.keys)?;
        if keys.iter().any(|record| record.digest == key.digest && record.id != key.id) {
            return Err(StoreError::of("memory", rusqlite::Error::InvalidQuery));
        }
        keys.retain(|record| record.id != key.id);
        keys.push(key.clone());
        Ok(())
    }

    fn forget_key(&self, id: &KeyId) -> Result<(), StoreError> {
        self.writes(&self.keys)?.retain(|record| record.id != *id);
        Ok(())
    }

    fn touch_keys(&self, used: &[(KeyId, u64)]) -> Result<(), StoreError> {
        let mut keys = self.writes(&self.keys)?;
        for (id, at) in used {
            keys.iter_mut().filter(|key| key.id == *id).for_each(|key| key.last_used = Some(*at));
        }
        Ok(())
    }
}

impl InvitationStore for VolatileStore {
    fn load_invitations(&self) -> Result<Vec<InvitationRecord>, StoreError> {
        let mut all = lock(&self.invitations).clone();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(all)
    }

    fn save_invitation(&self, invitation: &InvitationRecord) -> Result<(), StoreError> {
        let mut all = self.writes(&self.invitations)?;
        all.retain(|record| record.id != invitation.id);
        all.push(invitation.clone());
        Ok(())
    }

    fn use_invitation(&self, invitation: &InvitationRecord) -> Result<bool, StoreError> {
        let all = self.writes(&self.invitations)?;
        let is_over = |record: &InvitationRecord| record.used.is_some() || record.revoked.is_some();
        if all.iter().any(|record| record.id == invitation.id && is_over(record)) {
            return Ok(false);
        }
        drop(all);
        self.save_invitation(invitation).map(|()| true)
    }

    fn forget_invitation(&self, id: &str) -> Result<(), StoreError> {
        self.writes(&self.invitations)?.retain(|record| record.id != id);
        Ok(())
    }
}

impl UsageStore for VolatileStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        self.writes(&self.usage)?.extend_from_slice(entries);
        Ok(())
    }

    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        Ok(ledger::answer(&lock(&self.usage), query))
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        let mut usage = self.writes(&self.usage)?;
        let before = usage.len();
        usage.sort_by_key(|entry| entry.at_ms);
        let old = usage.iter().take_while(|entry| entry.at_ms < before_ms).count().min(most);
        usage.drain(..old);
        Ok(before - usage.len())
    }
}

impl AgeStore for VolatileStore {
    fn load_reached(&self) -> Result<Option<u64>, StoreError> {
        Ok(*lock(&self.reached))
    }

    fn save_reached(&self, at_ms: u64) -> Result<(), StoreError> {
        *self.writes(&self.reached)? = Some(at_ms);
        Ok(())
    }
}

impl AuditStore for VolatileStore {
    fn add_action(&self, action: &Action) -> Result<(), StoreError> {
        let mut audit = self.writes(&self.audit)?;
        audit.push_front(action.clone());
        audit.truncate(MAX_ACTIONS);
        Ok(())
    }

    fn actions(&self, most: usize) -> Result<Vec<Action>, StoreError> {
        Ok(lock(&self.audit).iter().take(most).cloned().collect())
    }
}

impl PageSessionStore for VolatileStore {
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError> {
        let mut all = lock(&self.page_sessions).clone();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(all)
    }

    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError> {
        let mut all = self.writes(&self.page_sessions)?;
        all.retain(|record| record.id != session.id);
        all.push(session.clone());
        Ok(())
    }

    fn forget_page_session(&self, id: &str) -> Result<(), StoreError> {
        self.writes(&self.page_sessions)?.retain(|record| record.id != id);
        Ok(())
    }

    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError> {
        let mut all = self.writes(&self.page_sessions)?;
        for (id, at) in used {
            all.iter_mut()
                .filter(|record| record.id == *id)
                .for_each(|it| it.last_used = Some(*at));
        }
        Ok(())
    }
}

impl WorkspaceStore for VolatileStore {
    fn load_facts(&self, kind: &str) -> Result<Vec<Fact>, StoreError> {
        let facts = lock(&self.facts);
        let of_kind = facts.iter().filter(|((of, _), _)| of == kind);
        let fact = |((kind, id), json): (&(String, String), &String)| Fact {
            kind: kind.clone(),
            id: id.clone(),
            json: json.clone(),
        };
        Ok(of_kind.map(fact).collect())
    }

    fn change_facts(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut facts = self.writes(&self.facts)?;
        for change in changes.iter().cloned() {
            match change {
                Change::Keep(Fact { kind, id, json }) => facts.insert((kind, id), json),
                Change::Forget { kind, id } => facts.remove(&(kind, id)),
            };
        }
        Ok(())
    }
}
