//! The tables of rooms and participants.

use base::{KeyId, ParticipantId, RoomId};
use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};

use super::{SqliteStore, signed, unsigned};
use crate::{KeyDigest, ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse, StoreError};

impl RoomStore for SqliteStore {
    fn load_rooms(&self) -> Result<Vec<RoomRecord>, StoreError> {
        self.rows("SELECT * FROM rooms ORDER BY created, id", [], room)
    }

    fn load_participants(&self) -> Result<Vec<ParticipantRecord>, StoreError> {
        self.rows("SELECT room, id, session, json FROM participants", [], participant)
    }

    fn load_participants_of(&self, room: &RoomId) -> Result<Vec<ParticipantRecord>, StoreError> {
        let which = "SELECT room, id, session, json FROM participants WHERE room = ?1";
        self.rows(which, [room.as_str()], participant)
    }

    fn find_room(&self, name: &str) -> Result<Option<RoomRecord>, StoreError> {
        let which = "SELECT * FROM rooms WHERE id = ?1 OR short_code = ?1 OR spoken_code = ?1";
        self.row(which, [name], room)
    }

    fn room_uses(&self) -> Result<Vec<RoomUse>, StoreError> {
        let all =
            "SELECT id, used, (SELECT count(*) FROM participants WHERE room = rooms.id) FROM rooms";
        self.rows(all, [], |row| {
            let room = RoomId::from(row.get::<_, String>(0)?);
            Ok(RoomUse { room, used: unsigned(row.get(1)?), participants: row.get(2)? })
        })
    }

    fn save_room(&self, room: &RoomRecord) -> Result<(), StoreError> {
        self.write(|transaction| save_room(transaction, room))
    }

    fn change_room(&self, room: &RoomRecord) -> Result<bool, StoreError> {
        let is_there = "SELECT count(*) FROM rooms WHERE id = ?1 AND epoch = ?2";
        self.write(|transaction| {
            let which = params![room.id.as_str(), signed(room.epoch)];
            let is_there: bool = transaction.query_row(is_there, which, |row| row.get(0))?;
            if is_there {
                save_room(transaction, room)?;
            }
            Ok(is_there)
        })
    }

    fn claim_room(
        &self,
        id: &RoomId,
        epoch: u64,
        home: &RoomHome,
    ) -> Result<Option<RoomRecord>, StoreError> {
        let update = "UPDATE rooms SET home = ?3, home_start = ?4, epoch = epoch + 1
            WHERE id = ?1 AND epoch = ?2 RETURNING *";
        let values = params![id.as_str(), signed(epoch), home.server, home.start];
        self.write(|transaction| transaction.query_row(update, values, room).optional())
    }

    fn touch_rooms(&self, used: &[(RoomId, u64)]) -> Result<(), StoreError> {
        let used = used.iter().map(|(id, at)| (id.as_str(), *at));
        self.touch("UPDATE rooms SET used = ?2 WHERE id = ?1", used)
    }

    fn forget_room(&self, id: &RoomId) -> Result<(), StoreError> {
        self.change("DELETE FROM rooms WHERE id = ?1", [id.as_str()]).map(drop)
    }

    fn save_participant(&self, participant: &ParticipantRecord) -> Result<(), StoreError> {
        let ParticipantRecord { room, id, session, json } = participant;
        let insert = "INSERT INTO participants (room, id, session, json) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (room, id) DO UPDATE SET session = ?3, json = ?4";
        let values = params![room.as_str(), id.as_str(), session.0, json];
        self.change(insert, values).map(drop)
    }

    fn forget_participant(&self, room: &RoomId, id: &ParticipantId) -> Result<(), StoreError> {
        let delete = "DELETE FROM participants WHERE room = ?1 AND id = ?2";
        self.change(delete, [room.as_str(), id.as_str()]).map(drop)
    }
}

fn room(row: &Row<'_>) -> rusqlite::Result<RoomRecord> {
    Ok(RoomRecord {
        id: RoomId::from(row.get::<_, String>("id")?),
        short_code: row.get("short_code")?,
        spoken_code: row.get("spoken_code")?,
        name: row.get("name")?,
        host_id: row.get("host_id")?,
        host_token: KeyDigest(row.get("host_token")?),
        password: row.get("password")?,
        defaults: row.get("defaults")?,
        public: row.get("public")?,
        owner: row.get::<_, Option<String>>("owner")?.map(KeyId::from),
        idle_ms: unsigned(row.get("idle_ms")?),
        created: unsigned(row.get("created")?),
        used: unsigned(row.get("used")?),
        home: RoomHome { server: row.get("home")?, start: row.get("home_start")? },
        epoch: unsigned(row.get("epoch")?),
    })
}

fn save_room(transaction: &Transaction<'_>, room: &RoomRecord) -> rusqlite::Result<()> {
    // Not OR REPLACE: that would delete another room with the same code.
    let insert = "INSERT INTO rooms VALUES (:id, :short_code, :spoken_code, :name, :host_id,
            :host_token, :password, :defaults, :public, :owner, :idle_ms, :created, :used, :home, :home_start, :epoch)
        ON CONFLICT (id) DO UPDATE SET short_code = :short_code, spoken_code = :spoken_code,
            name = :name, host_id = :host_id, host_token = :host_token, password = :password,
            defaults = :defaults, public = :public, owner = :owner, idle_ms = :idle_ms,
            created = :created, used = :used, home = :home,
            home_start = :home_start, epoch = :epoch";
    let values = named_params! {
        ":id": room.id.as_str(),
        ":short_code": room.short_code,
        ":spoken_code": room.spoken_code,
        ":name": room.name,
        ":host_id": room.host_id,
        ":host_token": room.host_token.0,
        ":password": room.password,
        ":defaults": room.defaults,
        ":public": room.public,
        ":owner": room.owner.as_ref().map(KeyId::as_str),
        ":idle_ms": signed(room.idle_ms),
        ":created": signed(room.created),
        ":used": signed(room.used),
        ":home": room.home.server,
        ":home_start": room.home.start,
        ":epoch": signed(room.epoch),
    };
    transaction.execute(insert, values).map(drop)
}

fn participant(row: &Row<'_>) -> rusqlite::Result<ParticipantRecord> {
    Ok(ParticipantRecord {
        room: RoomId::from(row.get::<_, String>(0)?),
        id: ParticipantId::from(row.get::<_, String>(1)?),
        session: KeyDigest(row.get(2)?),
        json: row.get(3)?,
    })
}
