//! NVIDIA's GPUs, as far as its driver reports them.

use crate::{
    Gpu, Root, Tools, Vendor,
    root::{name, value},
};

const MAX_GPUS: usize = 64;

const QUERY: [&str; 2] = ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"];

/// The GPUs by NVIDIA's tool; where it fails, by the driver, which knows names only.
pub(super) fn gpus(root: &Root, tools: &impl Tools) -> Vec<Gpu> {
    let output = tools.run("nvidia-smi", &QUERY).unwrap_or_default();
    let gpus: Vec<Gpu> = output.lines().filter_map(by_tool).take(MAX_GPUS).collect();
    if gpus.is_empty() { by_driver(root) } else { gpus }
}

/// `NAME, MIB`. One that has the machine's memory for its own says `[N/A]`. What the tool says
/// when it fails has no such lines.
fn by_tool(line: &str) -> Option<Gpu> {
    let (called, mib) = line.rsplit_once(',')?;
    let mib = match mib.trim() {
        "[N/A]" | "[Not Supported]" => None,
        mib => Some(f64::from(mib.parse::<u32>().ok()?)),
    };
    Some(gpu(name(called)?, mib.map(|mib| mib / 1024.0)))
}

fn by_driver(root: &Root) -> Vec<Gpu> {
    let directories = root.children("proc/driver/nvidia/gpus", |_| true);
    let texts = directories.iter().filter_map(|gpu| root.text(&format!("{gpu}/information")));
    texts.filter_map(|text| Some(gpu(value(&text, "Model")?, None))).collect()
}

fn gpu(name: String, vram_gb: Option<f64>) -> Gpu {
    Gpu { name, vendor: Vendor::Nvidia, vram_gb, backend: "cuda", runs_models: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MadeUp, Says};

    fn listed(text: &str) -> Vec<(String, Option<f64>)> {
        let tools = Says::nothing().of("nvidia-smi", text);
        let gpus = gpus(&MadeUp::new().root(), &tools);
        gpus.into_iter().map(|gpu| (gpu.name, gpu.vram_gb)).collect()
    }

    #[test]
    fn each_gpu_has_a_line() {
        let two = listed("NVIDIA GeForce RTX 4090, 24564\nNVIDIA GB10, [N/A]\n");
        let first = ("NVIDIA GeForce RTX 4090".to_owned(), Some(24564.0 / 1024.0));
        assert_eq!(two, [first, ("NVIDIA GB10".to_owned(), None)]);
        assert_eq!(listed(&"A, 1\n".repeat(1000)).len(), MAX_GPUS);
    }

    #[test]
    fn the_output_of_a_failed_tool_is_no_gpu() {
        let failed = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
                      Make sure that the latest NVIDIA driver is installed, and running.\n";
        assert!(listed(failed).is_empty() && listed("No devices were found\n").is_empty());
        assert!(listed(", 1\nA, -5\nB, 1e400\nC, \n").is_empty());
    }

    #[test]
    fn without_the_tool_the_driver_tells_names() {
        let made = MadeUp::new();
        let card = "proc/driver/nvidia/gpus/0000:01:00.0/information";
        made.file(card, "Model: \t\t NVIDIA L4\nIRQ:   1\n");
        let gpus = gpus(&made.root(), &Says::nothing());
        assert_eq!(gpus, [gpu("NVIDIA L4".to_owned(), None)]);
    }
}
