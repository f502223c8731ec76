//! The tables of stored responses and conversations.

use base::KeyId;
use rusqlite::{Row, Transaction, params};

use super::{SqliteStore, signed, unsigned};
use crate::{
    StoreError,
    responses::{
        ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
        size_of,
    },
};

impl ResponseStore for SqliteStore {
    fn save_response(&self, response: &ResponseRecord, most: KeptBounds) -> Result<(), StoreError> {
        let insert = "INSERT INTO responses
            (id, owner, previous, conversation, created, beat, size, input, response)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let over = "DELETE FROM responses WHERE id <> ?1 AND beat IS NULL AND id IN (
            SELECT id FROM (SELECT id, row_number() OVER newest AS number, sum(size) OVER newest AS bytes
                FROM responses WHERE owner = ?2 WINDOW newest AS (ORDER BY created DESC, id DESC))
            WHERE number > ?3 OR bytes > ?4)";
        let values = params![
            response.id,
            response.owner.as_str(),
            response.previous,
            response.conversation,
            signed(response.created),
            response.beat.map(signed),
            signed(response.size()),
            response.input,
            response.response,
        ];
        let (number, bytes) = (signed(most.number), signed(most.bytes));
        self.write(|transaction| {
            transaction.execute(insert, values)?;
            let which = params![response.id, response.owner.as_str(), number, bytes];
            transaction.execute(over, which).map(drop)
        })
    }

    fn find_response(&self, owner: &KeyId, id: &str) -> Result<Option<ResponseRecord>, StoreError> {
        let which = "SELECT * FROM responses WHERE id = ?1 AND owner = ?2";
        self.row(which, [id, owner.as_str()], response)
    }

    fn response_chain(
        &self,
        owner: &KeyId,
        id: &str,
        most: ChainBounds,
    ) -> Result<Vec<ResponseRecord>, StoreError> {
        let chain = "WITH RECURSIVE chain (link, before, depth, bytes) AS (
                SELECT id, previous, 1, size FROM responses WHERE id = ?1 AND owner = ?2
                UNION ALL
                SELECT responses.id, responses.previous, depth + 1, bytes + size
                    FROM chain JOIN responses ON responses.id = before
                    WHERE owner = ?2 AND depth < ?3 AND bytes <= ?4)
            SELECT responses.* FROM chain JOIN responses ON id = link ORDER BY depth";
        let which = params![id, owner.as_str(), signed(most.links), signed(most.bytes)];
        self.rows(chain, which, response)
    }

    fn change_running(
        &self,
        owner: &KeyId,
        id: &str,
        response: Option<&str>,
        beat: Option<u64>,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE responses SET beat = ?4, response = coalesce(?3, response),
                size = length(CAST(input AS BLOB)) + length(CAST(coalesce(?3, response) AS BLOB))
            WHERE id = ?1 AND owner = ?2 AND beat IS NOT NULL";
        let values = params![id, owner.as_str(), response, beat.map(signed)];
        Ok(self.change(update, values)? > 0)
    }

    fn lose_running(&self) -> Result<(), StoreError> {
        self.change("UPDATE responses SET beat = 0 WHERE beat IS NOT NULL", []).map(drop)
    }

    fn forget_response(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM responses WHERE id = ?1 AND owner = ?2";
        Ok(self.change(delete, [id, owner.as_str()])? > 0)
    }

    fn save_conversation(
        &self,
        conversation: &ConversationRecord,
        items: &[ItemRecord],
        most: KeptBounds,
    ) -> Result<(), StoreError> {
        let ConversationRecord { id, owner, created, used, metadata } = conversation;
        let insert = "INSERT INTO conversations (id, owner, created, used, size, metadata)
            VALUES (?1, ?2, ?3, ?4, 0, ?5)";
        let values = params![id, owner.as_str(), signed(*created), signed(*used), metadata];
        self.write(|transaction| {
            transaction.execute(insert, values)?;
            add_items(transaction, id, items)?;
            forget_over(transaction, owner, id, most)
        })
    }

    fn find_conversation(
        &self,
        owner: &KeyId,
        id: &str,
    ) -> Result<Option<ConversationRecord>, StoreError> {
        let which = "SELECT * FROM conversations WHERE id = ?1 AND owner = ?2";
        self.row(which, [id, owner.as_str()], conversation)
    }

    fn change_conversation(
        &self,
        owner: &KeyId,
        id: &str,
        metadata: &str,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE conversations SET metadata = ?3 WHERE id = ?1 AND owner = ?2";
        Ok(self.change(update, [id, owner.as_str(), metadata])? > 0)
    }

    fn forget_conversation(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM conversations WHERE id = ?1 AND owner = ?2";
        Ok(self.change(delete, [id, owner.as_str()])? > 0)
    }

    fn items(&self, owner: &KeyId, id: &str) -> Result<Option<Vec<ItemRecord>>, StoreError> {
        let is_there = "SELECT count(*) FROM conversations WHERE id = ?1 AND owner = ?2";
        let all = "SELECT id, json FROM conversation_items WHERE conversation = ?1 ORDER BY number";
        self.read(|connection| {
            if !connection.query_row(is_there, [id, owner.as_str()], |row| row.get(0))? {
                return Ok(None);
            }
            let mut query = connection.prepare(all)?;
            let item = |row: &Row<'_>| Ok(ItemRecord { id: row.get(0)?, json: row.get(1)? });
            query.query_map([id], item)?.collect::<Result<_, _>>().map(Some)
        })
    }

    fn add_items(
        &self,
        owner: &KeyId,
        id: &str,
        items: &[ItemRecord],
        used: u64,
        most: KeptBounds,
    ) -> Result<bool, StoreError> {
        let touch = "UPDATE conversations SET used = max(used, ?3) WHERE id = ?1 AND owner = ?2";
        let values = params![id, owner.as_str(), signed(used)];
        self.write(|transaction| {
            if transaction.execute(touch, values)? == 0 {
                return Ok(false);
            }
            add_items(transaction, id, items)?;
            forget_over(transaction, owner, id, most)?;
            Ok(true)
        })
    }

    fn forget_item(&self, owner: &KeyId, id: &str, item: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM conversation_items WHERE conversation = ?1 AND id = ?3
            AND EXISTS (SELECT 1 FROM conversations WHERE id = ?1 AND owner = ?2)";
        let shrink = "UPDATE conversations SET size = size - (
                SELECT COALESCE(SUM(octet_length(id) + octet_length(json)), 0)
                FROM conversation_items WHERE conversation = ?1 AND id = ?3)
            WHERE id = ?1 AND owner = ?2";
        let which = [id, owner.as_str(), item];
        self.write(|transaction| {
            transaction.execute(shrink, which)?;
            Ok(transaction.execute(delete, which)? > 0)
        })
    }

    fn forget_kept_before(&self, at: u64) -> Result<u64, StoreError> {
        let at = [signed(at)];
        self.write(|transaction| {
            let responses = transaction.execute("DELETE FROM responses WHERE created < ?1", at)?;
            let unused = transaction.execute("DELETE FROM conversations WHERE used < ?1", at)?;
            Ok((responses + unused) as u64)
        })
    }

    fn kept_owners(&self) -> Result<Vec<KeyId>, StoreError> {
        let all = "SELECT owner FROM responses UNION SELECT owner FROM conversations";
        self.rows(all, [], |row| row.get::<_, String>(0).map(KeyId::from))
    }

    fn forget_kept_of(&self, owner: &KeyId) -> Result<u64, StoreError> {
        let which = [owner.as_str()];
        self.write(|transaction| {
            let responses = transaction.execute("DELETE FROM responses WHERE owner = ?1", which)?;
            let rest = transaction.execute("DELETE FROM conversations WHERE owner = ?1", which)?;
            Ok((responses + rest) as u64)
        })
    }
}

fn add_items(
    transaction: &Transaction<'_>,
    conversation: &str,
    items: &[ItemRecord],
) -> rusqlite::Result<()> {
    let insert = "INSERT INTO conversation_items (conversation, id, json) VALUES (?1, ?2, ?3)";
    let mut insert = transaction.prepare(insert)?;
    for ItemRecord { id, json } in items {
        insert.execute([conversation, id, json])?;
    }
    let grow = "UPDATE conversations SET size = size + ?2 WHERE id = ?1";
    transaction.execute(grow, params![conversation, signed(size_of(items))]).map(drop)
}

/// Deletes those of a key's conversations that exceed the bounds, but never the conversation `but`.
fn forget_over(
    transaction: &Transaction<'_>,
    owner: &KeyId,
    but: &str,
    most: KeptBounds,
) -> rusqlite::Result<()> {
    let over = "DELETE FROM conversations WHERE id <> ?1 AND id IN (
        SELECT id FROM (SELECT id, row_number() OVER newest AS number, sum(size) OVER newest AS bytes
            FROM conversations WHERE owner = ?2 WINDOW newest AS (ORDER BY used DESC, id DESC))
        WHERE number > ?3 OR bytes > ?4)";
    let which = params![but, owner.as_str(), signed(most.number), signed(most.bytes)];
    transaction.execute(over, which).map(drop)
}

fn response(row: &Row<'_>) -> rusqlite::Result<ResponseRecord> {
    Ok(ResponseRecord {
        id: row.get("id")?,
        owner: KeyId::from(row.get::<_, String>("owner")?),
        previous: row.get("previous")?,
        conversation: row.get("conversation")?,
        created: unsigned(row.get("created")?),
        beat: row.get::<_, Option<i64>>("beat")?.map(unsigned),
        input: row.get("input")?,
        response: row.get("response")?,
    })
}

fn conversation(row: &Row<'_>) -> rusqlite::Result<ConversationRecord> {
    Ok(ConversationRecord {
        id: row.get("id")?,
        owner: KeyId::from(row.get::<_, String>("owner")?),
        created: unsigned(row.get("created")?),
        used: unsigned(row.get("used")?),
        metadata: row.get("metadata")?,
    })
}
