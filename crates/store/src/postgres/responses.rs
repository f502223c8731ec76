//! The tables of stored responses and conversations.

use base::KeyId;
use tokio_postgres::{Row, Transaction};

use super::{
    PostgresStore, Value,
    columns::{maybe, signed, text, unsigned, value},
    failure::Failure,
};
use crate::{
    StoreError,
    responses::{
        ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
        size_of,
    },
};

impl ResponseStore for PostgresStore {
    fn save_response(&self, response: &ResponseRecord, most: KeptBounds) -> Result<(), StoreError> {
        let ResponseRecord {
            id,
            owner,
            previous,
            conversation,
            created,
            beat,
            input,
            response: of,
        } = response.clone();
        let size = signed(response.size());
        let insert = "INSERT INTO responses VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let over = "DELETE FROM responses WHERE id <> $1 AND beat IS NULL AND id IN (
            SELECT id FROM (SELECT id, row_number() OVER newest AS number, sum(size) OVER newest AS bytes
                FROM responses WHERE owner = $2 WINDOW newest AS (ORDER BY created DESC, id DESC)) AS kept
            WHERE number > $3 OR bytes > $4::BIGINT)";
        let (number, bytes) = (signed(most.number), signed(most.bytes));
        self.write(async move |transaction| {
            let owner = text(owner.as_str());
            let (previous, conversation) =
                (previous.as_deref().map(text), conversation.as_deref().map(text));
            let (created, beat) = (signed(created), beat.map(signed));
            let (id, input, of) = (text(&id), text(&input), text(&of));
            transaction
                .execute(
                    insert,
                    &[&id, &owner, &previous, &conversation, &created, &beat, &size, &input, &of],
                )
                .await?;
            transaction.execute(over, &[&id, &owner, &number, &bytes]).await?;
            Ok(())
        })
    }

    fn find_response(&self, owner: &KeyId, id: &str) -> Result<Option<ResponseRecord>, StoreError> {
        let which = "SELECT * FROM responses WHERE id = $1 AND owner = $2";
        self.row(which, one(owner, id), response)
    }

    fn response_chain(
        &self,
        owner: &KeyId,
        id: &str,
        most: ChainBounds,
    ) -> Result<Vec<ResponseRecord>, StoreError> {
        let chain = "WITH RECURSIVE chain (link, before, depth, bytes) AS (
                SELECT id, previous, 1::BIGINT, size FROM responses WHERE id = $1 AND owner = $2
                UNION ALL
                SELECT responses.id, responses.previous, depth + 1, bytes + size
                    FROM chain JOIN responses ON responses.id = before
                    WHERE owner = $2 AND depth < $3 AND bytes <= $4)
            SELECT responses.* FROM chain JOIN responses ON id = link ORDER BY depth";
        let mut which = one(owner, id);
        which.push(Box::new(signed(most.links)));
        which.push(Box::new(signed(most.bytes)));
        self.rows(chain, which, response)
    }

    fn change_running(
        &self,
        owner: &KeyId,
        id: &str,
        response: Option<&str>,
        beat: Option<u64>,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE responses SET beat = $4, response = coalesce($3, response),
                size = octet_length(input) + octet_length(coalesce($3, response))
            WHERE id = $1 AND owner = $2 AND beat IS NOT NULL";
        let mut values = one(owner, id);
        values.push(Box::new(response.map(text)));
        values.push(Box::new(beat.map(signed)));
        Ok(self.change(update, values)? > 0)
    }

    fn lose_running(&self) -> Result<(), StoreError> {
        let update = "UPDATE responses SET beat = 0 WHERE beat IS NOT NULL";
        self.change(update, Vec::new()).map(drop)
    }

    fn forget_response(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM responses WHERE id = $1 AND owner = $2";
        Ok(self.change(delete, one(owner, id))? > 0)
    }

    fn save_conversation(
        &self,
        conversation: &ConversationRecord,
        items: &[ItemRecord],
        most: KeptBounds,
    ) -> Result<(), StoreError> {
        let ConversationRecord { id, owner, created, used, metadata } = conversation.clone();
        let items = items.to_vec();
        let insert = "INSERT INTO conversations VALUES ($1, $2, $3, $4, 0, $5)";
        self.write(async move |transaction| {
            let (id, owner, metadata) = (text(&id), text(owner.as_str()), text(&metadata));
            let (created, used) = (signed(created), signed(used));
            transaction.execute(insert, &[&id, &owner, &created, &used, &metadata]).await?;
            add_items(transaction, &id, &items).await?;
            forget_over(transaction, &owner, &id, most).await
        })
    }

    fn find_conversation(
        &self,
        owner: &KeyId,
        id: &str,
    ) -> Result<Option<ConversationRecord>, StoreError> {
        let which = "SELECT * FROM conversations WHERE id = $1 AND owner = $2";
        self.row(which, one(owner, id), conversation)
    }

    fn change_conversation(
        &self,
        owner: &KeyId,
        id: &str,
        metadata: &str,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE conversations SET metadata = $3 WHERE id = $1 AND owner = $2";
        let mut values = one(owner, id);
        values.push(Box::new(text(metadata)));
        Ok(self.change(update, values)? > 0)
    }

    fn forget_conversation(&self, owner: &KeyId, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM conversations WHERE id = $1 AND owner = $2";
        Ok(self.change(delete, one(owner, id))? > 0)
    }

    fn items(&self, owner: &KeyId, id: &str) -> Result<Option<Vec<ItemRecord>>, StoreError> {
        let (owner, id) = (text(owner.as_str()), text(id));
        self.read(async move |client| {
            let is_there = "SELECT FROM conversations WHERE id = $1 AND owner = $2";
            if client.query_opt(is_there, &[&id, &owner]).await?.is_none() {
                return Ok(None);
            }
            let all =
                "SELECT id, json FROM conversation_items WHERE conversation = $1 ORDER BY number";
            let rows = client.query(all, &[&id]).await?;
            rows.iter().map(item).collect::<Result<_, _>>().map(Some)
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
        // This update also locks the conversation, so that the items of two responses do not mix.
        let touch =
            "UPDATE conversations SET used = GREATEST(used, $3) WHERE id = $1 AND owner = $2";
        let (owner, id, items) = (text(owner.as_str()), text(id), items.to_vec());
        self.write(async move |transaction| {
            if transaction.execute(touch, &[&id, &owner, &signed(used)]).await? == 0 {
                return Ok(false);
            }
            add_items(transaction, &id, &items).await?;
            forget_over(transaction, &owner, &id, most).await?;
            Ok(true)
        })
    }

    fn forget_item(&self, owner: &KeyId, id: &str, item: &str) -> Result<bool, StoreError> {
        // It locks the conversation before its items, as all changes do.
        let find = "SELECT FROM conversations WHERE id = $1 AND owner = $2 FOR UPDATE";
        let delete = "WITH gone AS (DELETE FROM conversation_items WHERE conversation = $1 AND id = $2
                RETURNING octet_length(id) + octet_length(json) AS bytes)
            UPDATE conversations SET size = size - gone.bytes FROM gone WHERE conversations.id = $1";
        let (owner, id, item) = (text(owner.as_str()), text(id), text(item));
        self.write(async move |transaction| {
            if transaction.query_opt(find, &[&id, &owner]).await?.is_none() {
                return Ok(false);
            }
            Ok(transaction.execute(delete, &[&id, &item]).await? > 0)
        })
    }

    fn forget_kept_before(&self, at: u64) -> Result<u64, StoreError> {
        let at = signed(at);
        self.write(async move |transaction| {
            let responses = "DELETE FROM responses WHERE created < $1";
            let conversations = "DELETE FROM conversations WHERE used < $1";
            let responses = transaction.execute(responses, &[&at]).await?;
            Ok(responses + transaction.execute(conversations, &[&at]).await?)
        })
    }

    fn kept_owners(&self) -> Result<Vec<KeyId>, StoreError> {
        let all = "SELECT owner FROM responses UNION SELECT owner FROM conversations";
        self.rows(all, Vec::new(), |row| value::<String>(row, "owner").map(KeyId::from))
    }

    fn forget_kept_of(&self, owner: &KeyId) -> Result<u64, StoreError> {
        let owner = text(owner.as_str());
        self.write(async move |transaction| {
            let responses = "DELETE FROM responses WHERE owner = $1";
            let conversations = "DELETE FROM conversations WHERE owner = $1";
            let responses = transaction.execute(responses, &[&owner]).await?;
            Ok(responses + transaction.execute(conversations, &[&owner]).await?)
        })
    }
}

/// The first two values of a statement about one response or conversation: its id and its owner.
fn one(owner: &KeyId, id: &str) -> Vec<Value> {
    vec![Box::new(text(id)), Box::new(text(owner.as_str()))]
}

async fn add_items(
    transaction: &Transaction<'_>,
    conversation: &String,
    items: &[ItemRecord],
) -> Result<(), Failure> {
    let ids: Vec<String> = items.iter().map(|item| text(&item.id)).collect();
    let json: Vec<String> = items.iter().map(|item| text(&item.json)).collect();
    let insert = "INSERT INTO conversation_items (conversation, id, json)
        SELECT $1, id, json FROM unnest($2::TEXT[], $3::TEXT[]) WITH ORDINALITY AS new (id, json, at)
        ORDER BY at";
    transaction.execute(insert, &[conversation, &ids, &json]).await?;
    let grow = "UPDATE conversations SET size = size + $2 WHERE id = $1";
    transaction.execute(grow, &[conversation, &signed(size_of(items))]).await?;
    Ok(())
}

/// Deletes those of a key's conversations that exceed the bounds, but never the conversation `but`.
async fn forget_over(
    transaction: &Transaction<'_>,
    owner: &String,
    but: &String,
    most: KeptBounds,
) -> Result<(), Failure> {
    let over = "DELETE FROM conversations WHERE id <> $1 AND id IN (
        SELECT id FROM (SELECT id, row_number() OVER newest AS number, sum(size) OVER newest AS bytes
            FROM conversations WHERE owner = $2 WINDOW newest AS (ORDER BY used DESC, id DESC)) AS kept
        WHERE number > $3 OR bytes > $4::BIGINT)";
    let (number, bytes) = (signed(most.number), signed(most.bytes));
    transaction.execute(over, &[but, owner, &number, &bytes]).await?;
    Ok(())
}

fn response(row: &Row) -> Result<ResponseRecord, Failure> {
    Ok(ResponseRecord {
        id: value(row, "id")?,
        owner: KeyId::from(value::<String>(row, "owner")?),
        previous: value(row, "previous")?,
        conversation: value(row, "conversation")?,
        created: unsigned(row, "created")?,
        beat: maybe(row, "beat")?,
        input: value(row, "input")?,
        response: value(row, "response")?,
    })
}

fn conversation(row: &Row) -> Result<ConversationRecord, Failure> {
    Ok(ConversationRecord {
        id: value(row, "id")?,
        owner: KeyId::from(value::<String>(row, "owner")?),
        created: unsigned(row, "created")?,
        used: unsigned(row, "used")?,
        metadata: value(row, "metadata")?,
    })
}

fn item(row: &Row) -> Result<ItemRecord, Failure> {
    Ok(ItemRecord { id: value(row, "id")?, json: value(row, "json")? })
}
