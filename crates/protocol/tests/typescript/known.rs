//! Types that the sources do not tell: those of other crates, and those that write themselves.

/// A type as TypeScript has it. `is_in_room`: whether a room's types name it, which have a `Capabilities` of their own.
pub(crate) fn known(name: &str, is_in_room: bool) -> Option<&'static str> {
    Some(match name {
        "bool" => "boolean",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "f32"
        | "f64" => "number",
        "String" | "str" | "PathBuf" | "RoomId" | "JobId" | "KeyId" => "string",
        // A time is RFC 3339; an id of the workspace is a UUID; an amount is a decimal number.
        "Timestamp" | "SessionId" | "ProjectId" | "TeamId" | "WaitId" | "PermissionId"
        | "Money" | "Currency" | "Secret" => "string",
        // Its bits are written by their names.
        "Capabilities" if !is_in_room => "string[]",
        "Value" | "RawValue" => "unknown",
        "Map" => "Record<string, unknown>",
        _ => return None,
    })
}

/// The name of a type in TypeScript, where its own says too little outside of its module.
pub(crate) fn name_of(rust: &str) -> &str {
    match rust {
        "List" => "ModelList",
        "Usage" => "TurnUsage",
        other => other,
    }
}
