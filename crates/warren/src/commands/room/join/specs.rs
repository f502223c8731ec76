//! What this machine is, as far as it tells; nothing is guessed.

use std::{fs, path::Path, process::Stdio, time::Duration};

use client::room::MachineSpecs;
use tokio::{io::AsyncReadExt, process::Command, time::timeout};

/// How long the tool of NVIDIA's driver may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most that is read of any of these, in bytes.
const MOST: u64 = 1 << 20;

/// Names are cut to so many bytes.
const LONGEST_NAME: usize = 200;

/// This machine.
pub(super) async fn of_this_machine() -> MachineSpecs {
    let (gpu, vram) = gpu().await;
    MachineSpecs {
        gpu,
        vram,
        ram: read(Path::new("/proc/meminfo")).as_deref().and_then(ram),
        cpu: read(Path::new("/proc/cpuinfo")).as_deref().and_then(cpu),
    }
}

async fn gpu() -> (Option<String>, Option<f64>) {
    if let Some(told) = nvidia_smi().await
        && let Some((gpu, vram)) = by_nvidia_smi(&told)
    {
        return (Some(gpu), vram);
    }
    if let Some(gpu) = below("/proc/driver/nvidia/gpus", "information")
        .iter()
        .find_map(|text| by_nvidia_driver(text))
    {
        return (Some(gpu), None);
    }
    by_amdgpu()
}

/// What NVIDIA's tool says; `None` where there is none, or it takes too long.
async fn nvidia_smi() -> Option<String> {
    let mut command = Command::new("nvidia-smi");
    command.args(["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let mut out = child.stdout.take()?.take(MOST);
    let mut told = String::new();
    timeout(PATIENCE, out.read_to_string(&mut told)).await.ok()?.ok()?;
    Some(told)
}

/// `NAME, MIB` for each GPU.
fn by_nvidia_smi(told: &str) -> Option<(String, Option<f64>)> {
    let gpus: Vec<(String, Option<f64>)> = told
        .lines()
        .filter_map(|line| {
            let (gpu, mib) = line.rsplit_once(',')?;
            Some((name(gpu)?, mib.trim().parse::<f64>().ok().map(|mib| mib / 1024.0)))
        })
        .collect();
    let (first, _) = gpus.first()?;
    let all_same = gpus.iter().all(|(gpu, _)| gpu == first);
    let gpu = match gpus.len() {
        1 => first.clone(),
        several if all_same => format!("{several} × {first}"),
        _ => gpus.iter().map(|(gpu, _)| gpu.as_str()).collect::<Vec<_>>().join(" + "),
    };
    let vram: Option<f64> = gpus.iter().map(|(_, vram)| *vram).sum();
    Some((name(&gpu)?, vram.map(tenths)))
}

fn by_nvidia_driver(information: &str) -> Option<String> {
    value(information, "Model")
}

/// AMD's cards: memory, and a name where the card has one.
fn by_amdgpu() -> (Option<String>, Option<f64>) {
    let cards = "/sys/class/drm";
    let vram = below(cards, "device/mem_info_vram_total")
        .iter()
        .filter_map(|text| bytes(text))
        .reduce(f64::max);
    if vram.is_none() {
        return (None, None);
    }
    let gpu = below(cards, "device/product_name").iter().find_map(|text| name(text));
    (gpu, vram)
}

fn bytes(text: &str) -> Option<f64> {
    let bytes: f64 = text.trim().parse().ok()?;
    Some(tenths(bytes / f64::from(1 << 30)))
}

fn cpu(cpuinfo: &str) -> Option<String> {
    ["model name", "Model", "Hardware"].iter().find_map(|key| value(cpuinfo, key))
}

fn ram(meminfo: &str) -> Option<f64> {
    let kib = value(meminfo, "MemTotal")?;
    let kib: f64 = kib.strip_suffix("kB")?.trim().parse().ok()?;
    Some(tenths(kib / f64::from(1 << 20)))
}

/// The value of the first line `KEY : VALUE`.
fn value(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == key).and_then(|(_, value)| name(value))
}

/// A name that may be shown; `None` when nothing is left of it.
fn name(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut name: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    Some(name).filter(|name| !name.is_empty())
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    fs::File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The texts of a file in each directory of another.
fn below(directory: &str, file: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(64).filter_map(|entry| read(&entry.path().join(file))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_and_memory_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD Ryzen 9  7950X\nmodel name\t: other\n";
        assert_eq!(cpu(cpuinfo).as_deref(), Some("AMD Ryzen 9 7950X"));
        assert_eq!(
            cpu("processor : 0\nModel : Raspberry Pi 5\n").as_deref(),
            Some("Raspberry Pi 5")
        );
        assert_eq!(ram("MemTotal:       65758888 kB\nMemFree: 1 kB\n"), Some(62.7));
        assert_eq!((cpu(""), cpu("model name :"), ram("MemTotal: lots")), (None, None, None));
    }

    #[test]
    fn gpus_are_read_and_none_is_invented() {
        let one = "NVIDIA GeForce RTX 4090, 24564\n";
        assert_eq!(by_nvidia_smi(one), Some(("NVIDIA GeForce RTX 4090".to_owned(), Some(24.0))));
        let two = "A100, 40960\nA100, 40960\n";
        assert_eq!(by_nvidia_smi(two), Some(("2 × A100".to_owned(), Some(80.0))));
        assert_eq!(by_nvidia_smi("A, 1024\nB, [N/A]\n"), Some(("A + B".to_owned(), None)));
        assert_eq!((by_nvidia_smi(""), by_nvidia_smi("no devices were found")), (None, None));
        let driver = "Model: \t\t NVIDIA L4\nIRQ:   1\n";
        assert_eq!(by_nvidia_driver(driver).as_deref(), Some("NVIDIA L4"));
        assert_eq!((bytes("17163091968\n"), bytes("x")), (Some(16.0), None));
    }

    #[tokio::test]
    async fn what_this_machine_tells_can_be_shown() {
        of_this_machine().await.check().unwrap();
    }
}
