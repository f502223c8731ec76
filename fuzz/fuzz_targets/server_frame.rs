//! Binary frames from a server: what is read is written and read again the same, and an error names
//! the job as soon as its number is there.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::relay::{ServerFrame, Version};

fuzz_target!(|data: &[u8]| {
    let number = data.get(1..5).map(|number| u32::from_be_bytes(number.try_into().unwrap()));
    match ServerFrame::decode(Bytes::copy_from_slice(data)) {
        Ok(frame) => {
            assert_eq!(Some(frame.job()), number);
            for version in [Version::Two, Version::Three] {
                assert_eq!(ServerFrame::decode(frame.encode(version)), Ok(frame.clone()));
            }
        }
        Err(error) => {
            assert_eq!(error.job, number);
            assert!(error.to_string().len() < 300);
        }
    }
});
