//! Where it is read what a machine is made of.
//!
//! - `processor`: `/proc/cpuinfo`, the device tree
//! - `memory`: `/proc/meminfo`, the limit of a container
//! - `modules`: the memory modules, by the tables of the firmware (SMBIOS)
//! - `graphics`: `/sys/class/drm`, with `nvidia`, `amd` and `pci_ids` for what it does not tell
//! - `apple`: what a Mac tells

mod amd;
mod apple;
mod graphics;
mod memory;
mod modules;
mod nvidia;
mod pci_ids;
mod processor;

use processor::Processor;

use crate::{
    Gpu, InstalledTools, Machine, Root, Tools, Vendor,
    root::name,
    system::{self, MachineReport},
    table,
};

const GIB: f64 = (1_u64 << 30) as f64;

/// The bandwidth of a processor of which nothing is known, in GB/s: two channels of DDR4. Stock
/// nodes say the same of each.
const UNKNOWN_CPU: f64 = 50.0;

/// The bandwidth of a GPU that no table knows, in GB/s.
const UNKNOWN_GPU: f64 = 200.0;

impl Machine {
    /// This machine. Blocks while files are read and tools are run: seldom more than 2 s, 6 s when
    /// the tools of two makers hang.
    #[must_use]
    pub fn detect() -> Self {
        let (root, tools) = (Root::system(), InstalledTools::default());
        match system::report() {
            Some(report) => of_report(&report, nvidia::gpus(&root, &tools)),
            None => Self::detect_at(&root, &tools),
        }
    }

    /// The machine that these files and tools describe.
    #[must_use]
    pub fn detect_at(root: &Root, tools: &impl Tools) -> Self {
        if cfg!(target_os = "macos") {
            return apple::machine(tools, platform());
        }
        let processor = processor::processor(root);
        let gpus = graphics::gpus(root, tools);
        let ram = memory::total_ram_gb(root).unwrap_or_default();
        assemble(processor, gpus, ram, || modules::bandwidth_gbs(root))
    }
}

/// The machine that its system describes, with these GPUs.
fn of_report(report: &MachineReport, gpus: Vec<Gpu>) -> Machine {
    let processor = Processor {
        family: processor::of_maker(&report.vendor),
        name: name(&report.processor),
        cores: report.cores,
    };
    assemble(processor, gpus, report.memory as f64 / GIB, || None)
}

/// The machine of these parts. Its memory modules are read only where that matters.
fn assemble(
    processor: Processor,
    mut gpus: Vec<Gpu>,
    total_ram_gb: f64,
    modules: impl FnOnce() -> Option<f64>,
) -> Machine {
    gpus.sort_by(|a, b| usefulness(b).total_cmp(&usefulness(a)));
    let main = gpus.first().filter(|gpu| gpu.runs_models);
    let known = main.map_or_else(|| processor.known(), |gpu| table::gpu(gpu.vendor, &gpu.name));
    let bandwidth = known.map(|known| f64::from(known.bandwidth_gbs));
    let unknown = || if main.is_some() { UNKNOWN_GPU } else { modules().unwrap_or(UNKNOWN_CPU) };
    Machine {
        chip_family: main.and_then(|gpu| family(gpu.vendor)).unwrap_or(processor.family),
        chip_name: chip_name(main, &processor),
        cpu_cores: processor.cores,
        total_ram_gb,
        gpu_core_count: known.filter(|_| main.is_some()).map_or(0, |known| known.gpu_cores),
        gpu_vram_gb: main.and_then(|main| vram_of_all(main.vendor, &gpus)),
        memory_bandwidth_gbs: bandwidth.unwrap_or_else(unknown),
        gpu_backend: main.map_or("cpu", |gpu| gpu.backend),
        platform: platform(),
        cpu_name: processor.name,
        gpus,
    }
}

/// The order of several GPUs: those that run models come first, then those with the most memory.
fn usefulness(gpu: &Gpu) -> f64 {
    let own = gpu.vram_gb.unwrap_or_default();
    if gpu.runs_models { 1e6 + own } else { own }
}

/// The family of a chip that is a GPU's; an Intel or Apple GPU has none of its own.
const fn family(vendor: Vendor) -> Option<&'static str> {
    match vendor {
        Vendor::Nvidia => Some("nvidiaGPU"),
        Vendor::Amd => Some("amdGPU"),
        Vendor::Intel | Vendor::Apple => None,
    }
}

fn chip_name(main: Option<&Gpu>, processor: &Processor) -> String {
    let name = main.map(|gpu| gpu.name.clone()).or_else(|| processor.name.clone());
    name.unwrap_or_else(|| "unknown processor".to_owned())
}

/// A model can be spread over the GPUs of one maker. A GPU of unknown memory adds nothing.
fn vram_of_all(vendor: Vendor, gpus: &[Gpu]) -> Option<f64> {
    let same = gpus.iter().filter(|gpu| gpu.vendor == vendor && gpu.runs_models);
    same.filter_map(|gpu| gpu.vram_gb).reduce(|a, b| a + b)
}

/// The operating system, as stock peers name it.
fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "macOS",
        "ios" => "iOS",
        other => other,
    }
}

#[cfg(test)]
mod tests;
