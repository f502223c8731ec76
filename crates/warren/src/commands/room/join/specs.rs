//! The hardware that this machine reports. Nothing is guessed.

use client::room::MachineSpecs;
use hardware::{Gpu, Machine};
use tokio::task::spawn_blocking;

/// The most bytes of a name: a room takes few more (`MAX_SPEC`).
const LONGEST_NAME: usize = 200;

/// Detects this machine's hardware, which takes up to 6 s.
pub(super) async fn of_this_machine() -> MachineSpecs {
    let machine = spawn_blocking(Machine::detect).await;
    machine.map(|machine| specs(&machine)).unwrap_or_default()
}

fn specs(machine: &Machine) -> MachineSpecs {
    MachineSpecs {
        gpu: gpus(&machine.gpus),
        vram: machine.gpu_vram_gb.map(tenths),
        ram: Some(tenths(machine.total_ram_gb)).filter(|ram| *ram > 0.0),
        cpu: machine.cpu_name.clone(),
    }
}

/// The GPUs that models run on, in one line.
fn gpus(gpus: &[Gpu]) -> Option<String> {
    let main = gpus.first().filter(|gpu| gpu.runs_models)?;
    let same = gpus.iter().filter(|gpu| gpu.runs_models && gpu.vendor == main.vendor);
    let names: Vec<&str> = same.map(|gpu| gpu.name.as_str()).collect();
    let mut line = match names.len() {
        1 => main.name.clone(),
        several if names.iter().all(|name| *name == main.name) => {
            format!("{several} × {}", main.name)
        }
        _ => names.join(" + "),
    };
    line.truncate(line.floor_char_boundary(LONGEST_NAME));
    Some(line)
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use hardware::Vendor;

    use super::*;

    fn gpu(name: &str, vendor: Vendor, runs_models: bool) -> Gpu {
        Gpu { name: name.to_owned(), vendor, vram_gb: Some(24.0), backend: "cuda", runs_models }
    }

    fn nvidia(names: &[&str]) -> Vec<Gpu> {
        names.iter().map(|name| gpu(name, Vendor::Nvidia, true)).collect()
    }

    #[test]
    fn gpus_are_named_in_one_line() {
        assert_eq!(gpus(&nvidia(&["RTX 4090"])).as_deref(), Some("RTX 4090"));
        assert_eq!(gpus(&nvidia(&["A100", "A100"])).as_deref(), Some("2 × A100"));
        assert_eq!(gpus(&nvidia(&["A", "B"])).as_deref(), Some("A + B"));
        let beside = [gpu("A", Vendor::Nvidia, true), gpu("part of a CPU", Vendor::Amd, false)];
        assert_eq!(gpus(&beside).as_deref(), Some("A"));
        assert_eq!((gpus(&beside[1..]), gpus(&[])), (None, None));
        let many = nvidia(&["a name with an é"; 64]);
        assert!(gpus(&many).unwrap().len() <= LONGEST_NAME);
    }

    #[test]
    fn sizes_are_rounded_and_unknown_parts_left_out() {
        let empty = hardware::Root::at("/proc/warren-has-no-such-directory");
        let unknown = Machine::detect_at(&empty, &Nothing);
        let cpu = Some("A processor".to_owned());
        let known = Machine {
            total_ram_gb: 62.7123,
            gpu_vram_gb: Some(23.98),
            cpu_name: cpu.clone(),
            gpus: nvidia(&["RTX 4090"]),
            ..unknown.clone()
        };
        let gpu = Some("RTX 4090".to_owned());
        let expected = MachineSpecs { gpu, vram: Some(24.0), ram: Some(62.7), cpu };
        assert_eq!(specs(&known), expected);
        if cfg!(target_os = "linux") {
            assert_eq!(specs(&unknown), MachineSpecs::default());
        }
    }

    /// A machine on which no tool is installed.
    struct Nothing;

    impl hardware::Tools for Nothing {
        fn run(&self, _: &str, _: &[&str]) -> Option<String> {
            None
        }
    }

    #[tokio::test]
    async fn the_report_of_this_machine_is_valid() {
        of_this_machine().await.check().unwrap();
    }
}
