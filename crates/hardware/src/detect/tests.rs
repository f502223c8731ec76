//! Whole machines, made up of files and of what tools say.

use super::*;
use crate::testing::{MadeUp, Says};

const INTEL: &str = "processor : 0\nvendor_id : GenuineIntel\nmodel name : Intel(R) Xeon(R) CPU\n";
const AMD: &str = "processor : 0\nvendor_id : AuthenticAMD\nmodel name : AMD Ryzen 9 7950X\n";
const GIB_64: &str = "MemTotal: 67108864 kB\n";

fn card(made: &MadeUp, number: u32, vendor: &str, files: &[(&str, &str)]) {
    let device = format!("sys/class/drm/card{number}/device");
    made.file(&format!("{device}/vendor"), format!("{vendor}\n"));
    for (file, text) in files {
        made.file(&format!("{device}/{file}"), text);
    }
}

fn computer(cpuinfo: &str) -> MadeUp {
    let made = MadeUp::new();
    made.file("proc/cpuinfo", cpuinfo).file("proc/meminfo", GIB_64);
    made
}

fn detected(made: &MadeUp, tools: &Says) -> Machine {
    Machine::detect_at(&made.root(), tools)
}

#[test]
fn a_machine_without_a_gpu_runs_models_on_its_processor() {
    let machine = detected(&computer(INTEL), &Says::nothing());
    assert_eq!((machine.chip_family, machine.gpu_backend), ("intelCPU", "cpu"));
    assert_eq!(machine.chip_name, "Intel(R) Xeon(R) CPU");
    assert_eq!((machine.gpu_core_count, machine.gpu_vram_gb), (0, None));
    assert_eq!((machine.memory_bandwidth_gbs, machine.total_ram_gb), (50.0, 64.0));
    assert_eq!((machine.max_model_size_gb(), machine.tier()), (48.0, 1));
    assert!(machine.gpus.is_empty());
}

#[test]
fn an_nvidia_gpu_is_the_chip_and_its_processors_own_gpu_is_only_listed() {
    let made = computer(AMD);
    card(&made, 0, "0x1002", &[("mem_info_vram_total", "536870912\n"), ("device", "0x164e")]);
    card(&made, 1, "0x10de", &[("device", "0x2684")]);
    let tools = Says::nothing().of("nvidia-smi", "NVIDIA GeForce RTX 4090, 24576\n");
    let machine = detected(&made, &tools);
    assert_eq!((machine.chip_family, machine.gpu_backend), ("nvidiaGPU", "cuda"));
    assert_eq!(machine.chip_name, "NVIDIA GeForce RTX 4090");
    assert_eq!(machine.cpu_name.as_deref(), Some("AMD Ryzen 9 7950X"));
    assert_eq!((machine.gpu_core_count, machine.gpu_vram_gb), (16384, Some(24.0)));
    assert_eq!((machine.memory_bandwidth_gbs, machine.max_model_size_gb()), (1008.0, 24.0));
    let listed: Vec<_> = machine.gpus.iter().map(|gpu| (gpu.vendor, gpu.runs_models)).collect();
    assert_eq!(listed, [(Vendor::Nvidia, true), (Vendor::Amd, false)]);
}

#[test]
fn several_gpus_of_one_maker_share_a_model() {
    let tools = Says::nothing().of("nvidia-smi", "NVIDIA L4, 23034\nNVIDIA A10, 24576\n");
    let machine = detected(&computer(INTEL), &tools);
    assert_eq!(machine.chip_name, "NVIDIA A10");
    assert_eq!(machine.gpu_vram_gb, Some(24.0 + 23034.0 / 1024.0));
}

#[test]
fn an_amd_card_is_named_by_its_tool_and_by_the_list_of_ids_without_it() {
    let made = computer(AMD);
    made.file("usr/share/misc/pci.ids", "1002  AMD\n\t744c  Navi 31 [Radeon RX 7900 XTX]\n");
    let vram = ("mem_info_vram_total", "25753026560\n");
    card(&made, 0, "0x1002", &[vram, ("device", "0x744c")]);
    let machine = detected(&made, &Says::nothing());
    assert_eq!((machine.chip_family, machine.gpu_backend), ("amdGPU", "vulkan"));
    assert_eq!(machine.chip_name, "AMD Radeon RX 7900 XTX");
    assert_eq!((machine.memory_bandwidth_gbs, machine.gpu_core_count), (960.0, 6144));
    made.file("dev/kfd", "");
    let output = "device,VRAM Total Memory (B),Card Series\ncard0,25753026560,Radeon PRO W7900\n";
    let machine = detected(&made, &Says::nothing().of("rocm-smi", output));
    assert_eq!((machine.chip_name.as_str(), machine.gpu_backend), ("AMD Radeon PRO W7900", "rocm"));
}

#[test]
fn an_intel_card_is_known_by_the_window_to_its_memory() {
    let made = computer(AMD);
    let window = "0x0000000081000000 0x0000000081ffffff 0x0000000000140204\n\
                  0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                  0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n";
    made.file("usr/share/hwdata/pci.ids", "8086  Intel\n\t56a0  DG2 [Arc A770]\n");
    card(&made, 0, "0x8086", &[("resource", window), ("device", "0x56a0")]);
    let machine = detected(&made, &Says::nothing());
    assert_eq!((machine.chip_family, machine.gpu_backend), ("amdCPU", "sycl"));
    assert_eq!((machine.chip_name.as_str(), machine.gpu_vram_gb), ("Intel Arc A770", Some(16.0)));
    assert_eq!(machine.memory_bandwidth_gbs, 560.0);
}

#[test]
fn a_gpu_that_models_cannot_use_is_listed_and_no_more() {
    let made = computer(INTEL);
    card(&made, 0, "0x8086", &[("resource", "0x00 0xfffffff 0x0\n"), ("device", "0xa780")]);
    card(&made, 1, "0x10de", &[("device", "0x2684")]);
    card(&made, 2, "0x1a03", &[]);
    let machine = detected(&made, &Says::nothing());
    assert_eq!((machine.chip_family, machine.gpu_backend), ("intelCPU", "cpu"));
    let names: Vec<&str> = machine.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    assert_eq!(names, ["Intel GPU", "NVIDIA GPU"]);
}

#[test]
fn a_gpu_that_no_table_knows_has_an_estimate() {
    let tools = Says::nothing().of("nvidia-smi", "NVIDIA Quantum 1, 32768\n");
    let machine = detected(&computer(INTEL), &tools);
    assert_eq!((machine.memory_bandwidth_gbs, machine.gpu_core_count), (200.0, 0));
}

#[test]
fn the_number_of_cards_is_bounded() {
    let made = computer(INTEL);
    for number in 0..200 {
        card(&made, number, "0x1002", &[("mem_info_vram_total", "17179869184")]);
    }
    assert_eq!(detected(&made, &Says::nothing()).gpus.len(), 64);
}

#[test]
fn nonsense_in_every_file_is_a_machine_of_which_nothing_is_known() {
    for nonsense in ["", "\0\0\0", "0x", "99999999999999999999999999", "-1", "\u{fffd} : :\n,,\n"] {
        let made = MadeUp::new();
        for file in ["proc/cpuinfo", "proc/meminfo", "proc/device-tree/model", "usr/share/pci.ids"]
        {
            made.file(file, nonsense);
        }
        made.file("sys/firmware/dmi/tables/DMI", nonsense);
        let files = ["device", "mem_info_vram_total", "resource", "product_name"];
        card(&made, 0, "0x1002", &files.map(|file| (file, nonsense)));
        card(&made, 1, nonsense, &[]);
        let tools = Says::nothing().of("nvidia-smi", nonsense).of("rocm-smi", nonsense);
        let machine = detected(&made, &tools);
        assert_eq!((machine.chip_family, machine.total_ram_gb), ("unknown", 0.0), "{nonsense}");
        assert_eq!((machine.memory_bandwidth_gbs, machine.tier()), (50.0, 4), "{nonsense}");
    }
}

#[test]
fn this_machine_is_detected() {
    let machine = Machine::detect();
    assert!(machine.memory_bandwidth_gbs > 0.0 && !machine.chip_name.is_empty());
    if cfg!(target_os = "linux") {
        assert!(machine.total_ram_gb > 0.0 && machine.platform == "linux");
    }
}

#[test]
fn a_machine_that_its_system_tells_of_has_its_processor_and_its_memory() {
    let report = MachineReport {
        vendor: "AuthenticAMD".into(),
        processor: "AMD Ryzen 9 7950X ".into(),
        cores: 32,
        memory: 64 << 30,
    };
    let machine = of_report(&report, Vec::new());
    assert_eq!((machine.chip_family, machine.cpu_cores), ("amdCPU", 32));
    assert_eq!((machine.chip_name.as_str(), machine.total_ram_gb), ("AMD Ryzen 9 7950X", 64.0));
    assert_eq!(machine.gpu_backend, "cpu");
}
