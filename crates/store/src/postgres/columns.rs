//! Values of rows. The database has no unsigned integers, and no NUL in a text.

use std::str::FromStr;

use tokio_postgres::{Row, types::FromSql};

use super::failure::Failure;
use crate::KeyDigest;
pub(super) use crate::usage::days::signed;

/// A column's value.
pub(super) fn value<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, Failure> {
    row.try_get(column).map_err(|error| Failure::Refused(Box::new(error)))
}

/// A number from a column that only has results of [`signed`].
pub(super) fn unsigned(row: &Row, column: &str) -> Result<u64, Failure> {
    value::<i64>(row, column).map(i64::unsigned_abs)
}

/// Such a number from a column that may be null.
pub(super) fn maybe(row: &Row, column: &str) -> Result<Option<u64>, Failure> {
    value::<Option<i64>>(row, column).map(|number| number.map(i64::unsigned_abs))
}

/// A number of 32 bits, from a column of 64 that may be null.
pub(super) fn small(row: &Row, column: &str) -> Result<Option<u32>, Failure> {
    let number = value::<Option<i64>>(row, column)?;
    number.map(u32::try_from).transpose().map_err(|error| Failure::Refused(Box::new(error)))
}

/// A SHA-256.
pub(super) fn digest(row: &Row, column: &str) -> Result<KeyDigest, Failure> {
    let bytes: &[u8] = value(row, column)?;
    bytes.try_into().map(KeyDigest).map_err(|error| Failure::Refused(Box::new(error)))
}

/// A value that is stored as text.
pub(super) fn parsed<T>(text: &str) -> Result<T, Failure>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    text.parse().map_err(|error| Failure::Refused(Box::new(error)))
}

/// A text as a column takes it: each NUL is replaced.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
