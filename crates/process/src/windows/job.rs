#![allow(unsafe_code, reason = "job objects have no safe form")]
//! A job object: a process with all that it starts, ended together.

use std::{
    ffi::c_void,
    io, mem,
    os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle},
    ptr,
};

use windows_sys::Win32::{
    Foundation::ERROR_MORE_DATA,
    System::JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicProcessIdList,
        JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
        TerminateJobObject,
    },
};

/// The most processes of a job that are listed.
const MOST_MEMBERS: usize = 4096;

/// Processes that Windows ends when this is dropped, or when this process has ended.
#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

impl Job {
    /// A job without processes.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: without attributes and a name it takes two null pointers. It returns a handle of our own, or null.
        let job = unsafe {
            let handle = CreateJobObjectW(ptr::null(), ptr::null());
            if handle.is_null() {
                return Err(io::Error::last_os_error());
            }
            Self(OwnedHandle::from_raw_handle(handle))
        };
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = mem::size_of_val(&limits) as u32;
        let limits: *const c_void = (&raw const limits).cast();
        // SAFETY: the kind of information has this form and size, and outlives the call.
        done(unsafe {
            SetInformationJobObject(job.raw(), JobObjectExtendedLimitInformation, limits, size)
        })?;
        Ok(job)
    }

    /// Takes in a process of ours, and what it starts from now on.
    pub(super) fn add(&self, process: RawHandle) -> io::Result<()> {
        // SAFETY: both are open handles; one that is not is refused.
        done(unsafe { AssignProcessToJobObject(self.raw(), process) })
    }

    /// Ends all processes at once.
    pub(super) fn end(&self) -> io::Result<()> {
        // SAFETY: it is an open handle.
        done(unsafe { TerminateJobObject(self.raw(), 1) })
    }

    /// The ids of the processes.
    pub(super) fn members(&self) -> io::Result<Vec<u32>> {
        // Two numbers of 32 bits, then an id in each word: the second number counts those.
        let mut list = vec![0_u64; 1 + MOST_MEMBERS];
        let size = mem::size_of_val(&list[..]) as u32;
        let into: *mut c_void = list.as_mut_ptr().cast();
        // SAFETY: it writes at most `size` bytes, which are there, and are aligned as its form is.
        let queried = done(unsafe {
            let kind = JobObjectBasicProcessIdList;
            QueryInformationJobObject(self.raw(), kind, into, size, ptr::null_mut())
        });
        match queried {
            Err(error) if error.raw_os_error() != Some(ERROR_MORE_DATA as i32) => {
                return Err(error);
            }
            _ => {}
        }
        let count = (list[0] >> 32) as usize;
        Ok(list[1..].iter().take(count).filter_map(|id| u32::try_from(*id).ok()).collect())
    }

    fn raw(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

fn done(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
