//! Readings of a Mac.

use super::{GIB, assemble, processor};
use crate::{Gpu, Machine, Tools, Vendor, root::name};

/// A Mac. On Apple's own chips the GPU shares the machine's memory, so it has none of its own.
pub(super) fn machine(tools: &impl Tools, platform: &'static str) -> Machine {
    let sysctl = |key: &str| tools.run("sysctl", &["-n", key]).and_then(|output| name(&output));
    let chip = sysctl("machdep.cpu.brand_string");
    let is_apples = chip.as_deref().is_some_and(|chip| chip.starts_with("Apple"));
    let processor = processor::Processor {
        family: family(chip.as_deref().unwrap_or_default()),
        cores: sysctl("hw.ncpu").and_then(|cores| cores.parse().ok()).unwrap_or_default(),
        name: chip,
    };
    let ram = sysctl("hw.memsize").and_then(|bytes| bytes.parse::<u64>().ok());
    let gpus = processor.name.iter().filter(|_| is_apples).map(|chip| gpu(chip)).collect();
    let machine = assemble(processor, gpus, ram.map_or(0.0, |bytes| bytes as f64 / GIB), || None);
    let cores = if is_apples { gpu_cores(tools) } else { None };
    Machine { gpu_core_count: cores.unwrap_or_default(), platform, ..machine }
}

fn family(chip: &str) -> &'static str {
    match chip {
        _ if chip.starts_with("Apple") => processor::of_apple(chip),
        _ if chip.starts_with("Intel") => "intelCPU",
        _ => "unknown",
    }
}

fn gpu(chip: &str) -> Gpu {
    let (name, vendor) = (chip.to_owned(), Vendor::Apple);
    Gpu { name, vendor, vram_gb: None, backend: "metal", runs_models: true }
}

/// `Total Number of Cores: 19`.
fn gpu_cores(tools: &impl Tools) -> Option<u32> {
    let output = tools.run("system_profiler", &["SPDisplaysDataType"])?;
    let value = crate::root::value(&output, "Total Number of Cores")?;
    value.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Says;

    #[test]
    fn a_mac_with_apples_chip_is_read() {
        let tools = Says::nothing()
            .of("sysctl -n machdep.cpu.brand_string", "Apple M2 Pro\n")
            .of("sysctl -n hw.ncpu", "12\n")
            .of("sysctl -n hw.memsize", "34359738368\n")
            .of("system_profiler", "Graphics:\n      Total Number of Cores: 19\n");
        let mac = machine(&tools, "macOS");
        assert_eq!((mac.chip_family, mac.chip_name.as_str()), ("m2Pro", "Apple M2 Pro"));
        assert_eq!((mac.total_ram_gb, mac.gpu_vram_gb, mac.cpu_cores), (32.0, None, 12));
        assert_eq!((mac.gpu_core_count, mac.memory_bandwidth_gbs), (19, 200.0));
        assert_eq!((mac.gpu_backend, mac.platform, mac.tier()), ("metal", "macOS", 2));
        assert_eq!(mac.max_model_size_gb(), 24.0);
    }

    #[test]
    fn an_older_mac_and_one_that_tells_nothing_have_no_gpu_for_models() {
        let intel = Says::nothing()
            .of("sysctl -n machdep.cpu.brand_string", "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz\n");
        let mac = machine(&intel, "macOS");
        assert_eq!((mac.chip_family, mac.gpu_backend, mac.gpus.len()), ("intelCPU", "cpu", 0));
        let silent = machine(&Says::nothing(), "macOS");
        assert_eq!((silent.chip_family, silent.total_ram_gb), ("unknown", 0.0));
    }
}
