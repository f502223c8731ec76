//! The tables of rooms and participants.

use base::{KeyId, ParticipantId, RoomId};
use tokio_postgres::{Row, types::ToSql};

use super::{
    PostgresStore, SharedTable, Value,
    columns::{digest, signed, text, unsigned, value},
    failure::Failure,
};
use crate::{Changes, ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse, StoreError};

/// Stores a room, or replaces the one with its id. Fails if another room has one of its codes.
const SAVE_ROOM: &str = "INSERT INTO rooms VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
        $14, $15, $16)
    ON CONFLICT (id) DO UPDATE SET short_code = $2, spoken_code = $3, name = $4, host_id = $5, host_token = $6,
        password = $7, defaults = $8, public = $9, owner = $10, idle_ms = $11, created = $12, used = $13,
        home = $14, home_start = $15, epoch = $16";

/// Replaces the room with this id and this epoch, if there is one.
const CHANGE_ROOM: &str =
    "UPDATE rooms SET short_code = $2, spoken_code = $3, name = $4, host_id = $5, host_token = $6,
        password = $7, defaults = $8, public = $9, owner = $10, idle_ms = $11, created = $12,
        used = GREATEST(used, $13), home = $14, home_start = $15
        WHERE id = $1 AND epoch = $16";

impl PostgresStore {
    /// The rooms that were changed after this number, and the number of the last change. `None`: all rooms. The use
    /// of a room is no change.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn changed_rooms(
        &self,
        since: Option<i64>,
    ) -> Result<(Changes<RoomRecord>, i64), StoreError> {
        self.changes(SharedTable::Rooms, since, room)
    }

    /// Writes a room by this statement. Returns how many rooms the statement has written.
    fn write_room(&self, statement: &'static str, room: &RoomRecord) -> Result<u64, StoreError> {
        let room = room.clone();
        self.write(async move |transaction| {
            let values: [&(dyn ToSql + Sync); 16] = [
                &text(room.id.as_str()),
                &text(&room.short_code),
                &text(&room.spoken_code),
                &text(&room.name),
                &text(&room.host_id),
                &room.host_token.0.as_slice(),
                &room.password.as_deref().map(text),
                &room.defaults.as_deref().map(text),
                &room.public,
                &room.owner.as_ref().map(|owner| text(owner.as_str())),
                &signed(room.idle_ms),
                &signed(room.created),
                &signed(room.used),
                &text(&room.home.server),
                &text(&room.home.start),
                &signed(room.epoch),
            ];
            Ok(transaction.execute(statement, &values).await?)
        })
    }
}

impl RoomStore for PostgresStore {
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        self.rows("SELECT * FROM rooms ORDER BY created, id", Vec::new(), room)
    }

    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError> {
        self.rows("SELECT * FROM participants", Vec::new(), participant)
    }

    fn load_participants_of(&self, room: &RoomId) -> Result<Vec<ParticipantRecord>, StoreError> {
        let which = "SELECT * FROM participants WHERE room = $1";
        self.rows(which, vec![Box::new(text(room.as_str()))], participant)
    }

    fn find_room(&self, name: &str) -> Result<Option<RoomRecord>, StoreError> {
        let which = "SELECT * FROM rooms WHERE id = $1 OR short_code = $1 OR spoken_code = $1";
        self.row(which, vec![Box::new(text(name))], room)
    }

    fn room_uses(&self) -> Result<Vec<RoomUse>, StoreError> {
        let all = "SELECT rooms.id, used, count(participants.id) AS participants FROM rooms
            LEFT JOIN participants ON participants.room = rooms.id GROUP BY rooms.id";
        self.rows(all, Vec::new(), room_use)
    }

    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError> {
        self.write_room(SAVE_ROOM, room).map(drop)
    }

    fn change_room(&self, room: &RoomRecord) -> Result<bool, StoreError> {
        self.write_room(CHANGE_ROOM, room).map(|written| written > 0)
    }

    fn claim_room(
        &self,
        id: &RoomId,
        epoch: u64,
        home: &RoomHome,
    ) -> Result<Option<RoomRecord>, StoreError> {
        let (id, epoch) = (text(id.as_str()), signed(epoch));
        let (server, start) = (text(&home.server), text(&home.start));
        let update = "UPDATE rooms SET home = $3, home_start = $4, epoch = epoch + 1
            WHERE id = $1 AND epoch = $2 RETURNING *";
        self.write(async move |transaction| {
            let claimed = transaction.query_opt(update, &[&id, &epoch, &server, &start]).await?;
            claimed.as_ref().map(room).transpose()
        })
    }

    fn touch_rooms(&self, used: &[(RoomId, u64)]) -> Result<(), StoreError> {
        let update = "UPDATE rooms SET used = GREATEST(used, touched.at)
            FROM (SELECT * FROM unnest($1::TEXT[], $2::BIGINT[]) AS touched (id, at) ORDER BY id) AS touched
            WHERE rooms.id = touched.id";
        self.touch(update, used.iter().map(|(id, at)| (id.as_str(), *at)))
    }

    fn forget_room(&self, id: &RoomId) -> Result<(), StoreError> {
        self.change("DELETE FROM rooms WHERE id = $1", vec![Box::new(text(id.as_str()))]).map(drop)
    }

    fn save_participant(&self, participant: &ParticipantRecord) -> Result<(), StoreError> {
        let ParticipantRecord { room, id, session, json } = participant;
        let insert = "INSERT INTO participants VALUES ($1, $2, $3, $4)
            ON CONFLICT (room, id) DO UPDATE SET session = $3, json = $4";
        let (room, id, json) = (text(room.as_str()), text(id.as_str()), text(json));
        let session = session.0.to_vec();
        let values: Vec<Value> =
            vec![Box::new(room), Box::new(id), Box::new(session), Box::new(json)];
        self.change(insert, values).map(drop)
    }

    fn forget_participant(&self, room: &RoomId, id: &ParticipantId) -> Result<(), StoreError> {
        let (room, id) = (text(room.as_str()), text(id.as_str()));
        let delete = "DELETE FROM participants WHERE room = $1 AND id = $2";
        self.change(delete, vec![Box::new(room), Box::new(id)]).map(drop)
    }
}

fn room(row: &Row) -> Result<RoomRecord, Failure> {
    Ok(RoomRecord {
        id: RoomId::from(value::<String>(row, "id")?),
        short_code: value(row, "short_code")?,
        spoken_code: value(row, "spoken_code")?,
        name: value(row, "name")?,
        host_id: value(row, "host_id")?,
        host_token: digest(row, "host_token")?,
        password: value(row, "password")?,
        defaults: value(row, "defaults")?,
        public: value(row, "public")?,
        owner: value::<Option<String>>(row, "owner")?.map(KeyId::from),
        idle_ms: unsigned(row, "idle_ms")?,
        created: unsigned(row, "created")?,
        used: unsigned(row, "used")?,
        home: RoomHome { server: value(row, "home")?, start: value(row, "home_start")? },
        epoch: unsigned(row, "epoch")?,
    })
}

fn room_use(row: &Row) -> Result<RoomUse, Failure> {
    let participants = u32::try_from(value::<i64>(row, "participants")?).unwrap_or(u32::MAX);
    let room = RoomId::from(value::<String>(row, "id")?);
    Ok(RoomUse { room, used: unsigned(row, "used")?, participants })
}

fn participant(row: &Row) -> Result<ParticipantRecord, Failure> {
    Ok(ParticipantRecord {
        room: RoomId::from(value::<String>(row, "room")?),
        id: ParticipantId::from(value::<String>(row, "id")?),
        session: digest(row, "session")?,
        json: value(row, "json")?,
    })
}
