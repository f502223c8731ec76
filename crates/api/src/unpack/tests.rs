//! Compressed bodies: whole ones, cut ones, and ones that grow without end.

use std::io::Write;

use flate2::{Compress, Compression, FlushCompress, write::GzEncoder};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;
use crate::uploads::Uploads;

const LIMIT: usize = 3 * PIECE + 7;

/// A text that `br` data stands for: made by hand, since there is no encoder here.
const BROTLI: &[u8] = b"\x8f\x02\x80hello\n\x03";

/// 1 GiB of zeros, as Node's encoder packs them.
const BROTLI_BOMB: &[u8] = include_bytes!("zeros.br");

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    compress_to_vec(plain, CompressionLevel::Fastest)
}

async fn unpacked(coding: Coding, packed: impl Into<Bytes>) -> Result<Bytes, ApiError> {
    let uploads = Uploads::new(1 << 30);
    unpack(coding, packed.into(), LIMIT, &mut uploads.hold()).await
}

async fn refusal(coding: Coding, packed: impl Into<Bytes>) -> (u16, String) {
    let error = unpacked(coding, packed).await.unwrap_err();
    (error.status.as_u16(), error.message.into_owned())
}

#[tokio::test]
async fn what_was_packed_comes_out_up_to_the_limit() {
    let plain: Vec<u8> = (0..LIMIT).map(|at| (at / 7 % 251) as u8).collect();
    for len in [0, 1, 1000, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, LIMIT] {
        let plain = &plain[..len];
        assert!(unpacked(Coding::Gzip, gzip(plain)).await.unwrap() == plain, "gzip of {len}");
        assert!(unpacked(Coding::Zstd, zstd(plain)).await.unwrap() == plain, "zstd of {len}");
    }
    assert_eq!(unpacked(Coding::Brotli, BROTLI).await.unwrap(), "hello\n");
}

#[tokio::test]
async fn one_byte_over_the_limit_is_too_many() {
    let plain = vec![b' '; LIMIT + 1];
    assert_eq!(refusal(Coding::Gzip, gzip(&plain)).await.0, 413);
    assert_eq!(refusal(Coding::Zstd, zstd(&plain)).await.0, 413);
}

#[tokio::test]
async fn what_is_cut_off_damaged_or_followed_by_more_is_refused() {
    let plain = b"{\"model\":\"m\",\"messages\":[]}".repeat(9);
    let packed = [
        (Coding::Gzip, gzip(&plain)),
        (Coding::Zstd, zstd(&plain)),
        (Coding::Brotli, BROTLI.into()),
    ];
    for (coding, packed) in packed {
        for cut in 0..packed.len() {
            let (status, words) = refusal(coding, packed[..cut].to_vec()).await;
            assert!(status == 400 && words.contains("cut off"), "{coding:?} {cut}: {words}");
        }
        for more in [&b"x"[..], &packed, &[0; 2 * BUFFER]] {
            let (status, words) = refusal(coding, [&packed, more].concat()).await;
            assert!(status == 400 && words.contains("goes on after the end"), "{words}");
        }
        let (status, words) = refusal(coding, plain.clone()).await;
        assert!(status == 400 && words.contains("damaged"), "{words}");
    }
}

#[tokio::test]
async fn a_wrong_checksum_is_damage() {
    let plain = b"some text that is long enough".repeat(4);
    let mut packed = zstd(&plain);
    let end = packed.len();
    packed[end - 1] ^= 1;
    assert_eq!(refusal(Coding::Zstd, packed).await.0, 400);
    let mut packed = gzip(&plain);
    let end = packed.len();
    packed[end - 5] ^= 1;
    assert_eq!(refusal(Coding::Gzip, packed).await.0, 400);
}

/// A GiB of zeros, which `Uploads` would let through: only the limit on the unpacked length stops it.
#[tokio::test]
async fn a_gibibyte_of_zeros_is_refused_at_the_limit() {
    for (coding, bomb) in [
        (Coding::Gzip, gzip_bomb()),
        (Coding::Zstd, zstd_bomb()),
        (Coding::Brotli, BROTLI_BOMB.to_vec()),
    ] {
        assert!(bomb.len() < LIMIT, "{coding:?}: the packed length does not stop it");
        assert_eq!(refusal(coding, bomb).await.0, 413, "{coding:?}");
    }
}

#[tokio::test]
async fn an_unpacker_takes_no_more_than_a_step_at_a_time() {
    for (coding, bomb) in [(Coding::Gzip, gzip_bomb()), (Coding::Zstd, zstd_bomb())] {
        let (mut unpacker, _) = Unpacker::new(coding, bomb.into()).unwrap();
        let mut into = Vec::new();
        assert_eq!(unpacker.step(&mut into, 1000), Ok(false));
        assert_eq!((into.len(), into.capacity() < 4096), (1000, true), "{coding:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unpacked_bytes_count_in_the_memory_of_all_bodies() {
    let uploads = Uploads::new(2 * 1024 * 1024);
    let mut other = uploads.hold();
    other.grow(1536 * 1024).await.unwrap();
    let packed = Bytes::from(gzip(&vec![0; PIECE]));
    let refused = unpack(Coding::Gzip, packed.clone(), LIMIT, &mut uploads.hold()).await;
    assert_eq!(refused.unwrap_err().status, 429);
    drop(other);
    assert_eq!(
        unpack(Coding::Gzip, packed, LIMIT, &mut uploads.hold()).await.unwrap().len(),
        PIECE
    );
}

#[tokio::test]
async fn a_wide_window_of_zstd_is_refused_before_its_memory_is_taken() {
    // 8 MiB, and the next larger window.
    assert_eq!(zstd_window(b"\x28\xb5\x2f\xfd\x00\x68"), Some(ZSTD_WINDOW));
    let (status, words) = refusal(Coding::Zstd, &b"\x28\xb5\x2f\xfd\x00\x69\x01\x00\x00"[..]).await;
    assert!(status == 400 && words.contains("window of 9437184 bytes"), "{words}");
    // One segment of 2 GiB.
    let one = b"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x80\x01\x00\x00";
    assert_eq!(zstd_window(one), Some(1 << 31));
    assert_eq!(refusal(Coding::Zstd, &one[..]).await.0, 400);
    assert_eq!(zstd_window(b"\x28\xb5\x2f\xfd\x61\x07\x00\x01"), Some(512));
    for cut in [&b""[..], b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\x00", b"\x28\xb5\x2f\xfd\xe0\x01"]
    {
        assert_eq!(zstd_window(cut), None, "{cut:?}");
    }
}

#[test]
fn names_of_codings_are_read_as_the_standard_has_them() {
    let of = |value: &'static str| {
        let value = http::HeaderValue::from_static(value);
        Coding::of(&[(header::CONTENT_ENCODING, value)].into_iter().collect())
    };
    for (name, coding) in [
        ("gzip", Some(Coding::Gzip)),
        ("X-GZip", Some(Coding::Gzip)),
        ("identity, zstd", Some(Coding::Zstd)),
        (" br ,", Some(Coding::Brotli)),
        ("Identity", None),
        ("", None),
    ] {
        assert_eq!(of(name), Ok(coding), "{name}");
    }
    for name in ["deflate", "gzip, zstd", "gzip, gzip", "zstd;q=1"] {
        let error = of(name).unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (415, Some(UNKNOWN)), "{name}");
        assert!(error.message.contains(Coding::TAKEN), "{}", error.message);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_unpacked_or_refused(bytes: Vec<u8>, at: usize, changed: u8) {
        let mut packed = [zstd(&bytes), gzip(&bytes), BROTLI.to_vec()];
        for packed in &mut packed {
            let at = at % packed.len();
            packed[at] ^= changed;
        }
        for packed in packed.into_iter().chain([bytes]) {
            for coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli] {
                let Ok((mut unpacker, _)) = Unpacker::new(coding, packed.clone().into()) else { continue };
                let mut into = Vec::new();
                while into.len() < LIMIT && unpacker.step(&mut into, PIECE) == Ok(false) {}
            }
        }
    }
}

/// The same 8 MiB of zeros again and again: after a full flush each begins again.
fn gzip_bomb() -> Vec<u8> {
    let mut deflate = Compress::new(Compression::best(), false);
    let (zeros, mut once) = (vec![0; 8 * 1024 * 1024], Vec::with_capacity(256 * 1024));
    deflate.compress_vec(&zeros, &mut once, FlushCompress::Full).unwrap();
    assert_eq!(deflate.total_in(), zeros.len() as u64);
    let header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";
    [header.to_vec(), once.repeat(128), vec![3, 0], vec![0; 8]].concat()
}

/// Blocks that say: this byte, 128 KiB times.
fn zstd_bomb() -> Vec<u8> {
    const BLOCK: u32 = 128 * 1024;
    let block = |is_last: u32| {
        let head = (is_last | 1 << 1 | BLOCK << 3).to_le_bytes();
        [head[0], head[1], head[2], 0]
    };
    let header = b"\x28\xb5\x2f\xfd\x00\x50";
    [header.to_vec(), block(0).repeat(8191), block(1).to_vec()].concat()
}
