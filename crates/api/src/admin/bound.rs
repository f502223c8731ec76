//! The rooms that keys are bound to, found by the codes that people know.

use access::KeyError;
use base::RoomId;
use protocol::admin::KeyJson;

/// A room that a key may be bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomName {
    /// Its id.
    pub id: RoomId,
    /// Its six-character code.
    pub short_code: String,
    /// The code to say aloud.
    pub spoken_code: String,
}

/// All rooms that keys may be bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomNames(Vec<RoomName>);

impl FromIterator<RoomName> for RoomNames {
    fn from_iter<T: IntoIterator<Item = RoomName>>(rooms: T) -> Self {
        Self(rooms.into_iter().collect())
    }
}

impl RoomNames {
    /// The room with this code (short or spoken, in any case) or id.
    ///
    /// # Errors
    /// [`KeyError::Invalid`] when no room has it.
    pub fn meant(&self, code: &str) -> Result<RoomId, KeyError> {
        let code = code.trim();
        let found = self.0.iter().find(|room| {
            room.short_code.eq_ignore_ascii_case(code)
                || room.spoken_code.eq_ignore_ascii_case(code)
                || room.id.as_str() == code
        });
        found.map(|room| room.id.clone()).ok_or_else(|| {
            let code = protocol::json::clip(code, 64);
            KeyError::Invalid(format!(
                "there is no room {code:?} to bind a key to: `warren room list` shows their codes"
            ))
        })
    }

    /// A key with the code of its room instead of the id, unless the room is gone.
    pub fn show(&self, mut key: KeyJson) -> KeyJson {
        let room = key.room.as_deref();
        let room = room.and_then(|id| self.0.iter().find(|room| room.id.as_str() == id));
        if let Some(room) = room {
            key.room = Some(room.short_code.clone());
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_meant_by_each_of_its_names() {
        let room = RoomName {
            id: "id-1".into(),
            short_code: "AB12CD".to_owned(),
            spoken_code: "swift-eagle-42".to_owned(),
        };
        let rooms: RoomNames = [room].into_iter().collect();
        for code in ["AB12CD", "ab12cd", "Swift-Eagle-42 ", "id-1"] {
            assert_eq!(rooms.meant(code).unwrap(), RoomId::from("id-1"));
        }
        let error = rooms.meant("nowhere").unwrap_err().to_string();
        assert!(error.contains("nowhere") && error.contains("room list"), "{error}");
    }
}
