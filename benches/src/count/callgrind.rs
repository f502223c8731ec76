//! A program under callgrind, and what that has counted of it.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::{process::Command, time::timeout};

/// How long it may take to write what it counted.
const WRITES: Duration = Duration::from_secs(60);

/// The functions whose calls are allocations, with jemalloc's prefix or without.
const ALLOCATORS: [&str; 7] =
    ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "mallocx", "rallocx"];

/// Large copies without the `rep` instructions, of which callgrind counts each byte.
const TUNABLES: &str = "glibc.cpu.hwcaps=-ERMS,-FSRM";

/// Runs programs under callgrind and asks for what they have spent.
pub(super) struct Callgrind {
    dir: PathBuf,
    program: PathBuf,
}

/// The cost of a process so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Cost {
    /// Of its busiest thread.
    pub(super) instructions: u64,
    /// Of the same thread.
    pub(super) allocations: u64,
    /// Instructions of its other threads.
    pub(super) elsewhere: u64,
}

impl Callgrind {
    /// Makes a program of its own in `dir` that runs `program` under callgrind, so that it is started as any other.
    /// Deletes the earlier content of `dir`.
    pub(super) fn new(program: &Path, dir: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let (dir, program) = (dir.canonicalize()?, program.canonicalize()?);
        let script = dir.join("warren");
        fs::write(&script, wrapper(&dir, &program))?;
        fs::set_permissions(&script, Permissions::from_mode(0o755))?;
        Ok(Self { dir, program: script })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The cost of this process since the last time, or since its start.
    pub(super) async fn dump(&self, pid: u32) -> Result<Cost> {
        let before = self.files(pid)?.len();
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(prefix(&self.dir)).arg(format!("--pid={pid}")).arg("dump").kill_on_drop(true);
        let output = timeout(WRITES, vgdb.output()).await.context("callgrind does not answer")?;
        let output = output.context("start vgdb")?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "callgrind wrote nothing: {words}");
        let files = self.files(pid)?;
        ensure!(files.len() > before, "callgrind wrote nothing: {words}");
        let texts = files[before..].iter().map(fs::read_to_string);
        let threads: Vec<Thread> =
            texts.map(|text| Ok(Thread::parse(&text?))).collect::<Result<_>>()?;
        Ok(Cost::of(&threads))
    }

    /// The files that were written of a process, in this order: by dump, then by thread.
    fn files(&self, pid: u32) -> Result<Vec<PathBuf>> {
        let start = format!("{pid}.");
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((dump, thread)) = name.strip_prefix(&start).and_then(|at| at.split_once('-'))
            else {
                continue;
            };
            found.push((dump.parse::<u32>()?, thread.parse::<u32>()?, path));
        }
        found.sort();
        Ok(found.into_iter().map(|(_, _, path)| path).collect())
    }
}

fn prefix(dir: &Path) -> String {
    format!("--vgdb-prefix={}/vgdb", dir.display())
}

fn wrapper(dir: &Path, program: &Path) -> String {
    let (prefix, dir, program) = (prefix(dir), dir.display(), program.display());
    format!(
        "#!/bin/sh\nexport GLIBC_TUNABLES={TUNABLES}\nexec valgrind --tool=callgrind --separate-threads=yes '{prefix}' \
         '--callgrind-out-file={dir}/%p' '{program}' \"$@\"\n"
    )
}

impl Cost {
    fn of(threads: &[Thread]) -> Self {
        let all: u64 = threads.iter().map(|thread| thread.instructions).sum();
        let busiest = threads.iter().max_by_key(|thread| thread.instructions);
        busiest.map_or_else(Self::default, |thread| Self {
            instructions: thread.instructions,
            allocations: thread.allocations,
            elsewhere: all - thread.instructions,
        })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Thread {
    instructions: u64,
    allocations: u64,
}

impl Thread {
    /// Reads callgrind's format, of which only totals, names and calls matter here. A name stands in full where it comes first,
    /// and then as its number.
    fn parse(text: &str) -> Self {
        let mut names: BTreeMap<&str, bool> = BTreeMap::new();
        let (mut thread, mut allocates) = (Self::default(), false);
        for line in text.lines() {
            let Some((key, value)) = line.split_once(['=', ':']) else { continue };
            match key {
                "fn" => drop(is_allocator(value, &mut names)),
                "cfn" => allocates = is_allocator(value, &mut names),
                "calls" if allocates => thread.allocations += number(value),
                "totals" => thread.instructions = number(value),
                _ => {}
            }
        }
        thread
    }
}

fn is_allocator<'a>(name: &'a str, known: &mut BTreeMap<&'a str, bool>) -> bool {
    let (id, full) = name.split_once(' ').unwrap_or((name, ""));
    if full.is_empty() {
        return known.get(id).copied().unwrap_or(false);
    }
    // A function that calls itself has the depth behind its name.
    let bare = full.split('\'').next().unwrap_or(full);
    let is_allocator = ALLOCATORS.contains(&bare.strip_prefix("_rjem_").unwrap_or(bare));
    known.insert(id, is_allocator);
    is_allocator
}

fn number(value: &str) -> u64 {
    value.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1\nthread: 2\nevents: Ir\nfn=(1) work\n5 10\ncfn=(2) malloc\n\
        calls=3 0\n5 90\ncfn=(3) other\ncalls=50 0\n1 1\nfn=(4) more\ncfn=(2)\ncalls=4 0\n1 1\n\
        cfn=(5) realloc'2\ncalls=1 0\n1 1\ncfn=(6) _rjem_calloc\ncalls=2 0\n1 1\ntotals: 104\n";

    #[test]
    fn calls_of_the_allocator_are_counted_by_name_and_by_number() {
        assert_eq!(Thread::parse(TEXT), Thread { instructions: 104, allocations: 10 });
    }

    #[test]
    fn the_busiest_thread_counts_and_the_others_are_added_up() {
        let threads = [(5, 1), (90, 7), (2, 9)]
            .map(|(instructions, allocations)| Thread { instructions, allocations });
        let cost = Cost { instructions: 90, allocations: 7, elsewhere: 7 };
        assert_eq!(Cost::of(&threads), cost);
        assert_eq!(Cost::of(&[]), Cost::default());
    }
}
