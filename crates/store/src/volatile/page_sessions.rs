//! Sessions of the page.

use super::{VolatileStore, lock};
use crate::{PageSessionRecord, PageSessionStore, StoreError};

impl PageSessionStore for VolatileStore {
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError> {
        let mut all = lock(&self.page_sessions).clone();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(all)
    }

    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError> {
        let mut all = self.writes(&self.page_sessions)?;
        all.retain(|kept| kept.id != session.id);
        all.push(session.clone());
        Ok(())
    }

    fn forget_page_session(&self, id: &str) -> Result<(), StoreError> {
        self.writes(&self.page_sessions)?.retain(|kept| kept.id != id);
        Ok(())
    }

    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError> {
        let mut all = self.writes(&self.page_sessions)?;
        for (id, at) in used {
            all.iter_mut().filter(|kept| kept.id == *id).for_each(|it| it.last_used = Some(*at));
        }
        Ok(())
    }
}
