//! The audit log's table.

use tokio_postgres::{Row, Transaction};

use super::{
    PostgresStore,
    columns::{signed, text, unsigned, value},
    failure::Failure,
};
use crate::{
    StoreError,
    audit::{Action, AuditStore, MAX_ACTIONS},
};

impl AuditStore for PostgresStore {
    fn add_action(&self, action: &Action) -> Result<(), StoreError> {
        let action = action.clone();
        self.write(async move |transaction| add(transaction, &[action]).await)
    }

    fn actions(&self, most: usize) -> Result<Vec<Action>, StoreError> {
        let newest = "SELECT * FROM audit ORDER BY id DESC LIMIT $1";
        self.rows(newest, vec![Box::new(signed(most as u64))], action)
    }
}

/// Adds actions, and forgets the oldest beyond the bound. The bound is on the ids. Those of transactions that failed
/// are missing, so a few actions less may be kept.
pub(super) async fn add(transaction: &Transaction<'_>, actions: &[Action]) -> Result<(), Failure> {
    let at: Vec<i64> = actions.iter().map(|action| signed(action.at)).collect();
    let texts = |of: fn(&Action) -> &str| actions.iter().map(|it| text(of(it))).collect::<Vec<_>>();
    let (who, what) = (texts(|it| &it.who), texts(|it| &it.what));
    let (target, outcome) = (texts(|it| &it.target), texts(|it| &it.outcome));
    let insert = "INSERT INTO audit (at, who, what, target, outcome)
        SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[])";
    transaction.execute(insert, &[&at, &who, &what, &target, &outcome]).await?;
    let forget = "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - $1";
    transaction.execute(forget, &[&signed(MAX_ACTIONS as u64)]).await?;
    Ok(())
}

fn action(row: &Row) -> Result<Action, Failure> {
    Ok(Action {
        at: unsigned(row, "at")?,
        who: value(row, "who")?,
        what: value(row, "what")?,
        target: value(row, "target")?,
        outcome: value(row, "outcome")?,
    })
}
