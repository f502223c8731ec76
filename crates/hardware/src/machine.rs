//! A machine as data.

/// The share of a machine's memory that a model may take where there is no GPU of its own memory.
const SHARE_OF_RAM: f64 = 0.75;

/// The maker of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
    /// Apple: a part of its chips.
    Apple,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Its name, without control characters, at most 200 bytes.
    pub name: String,
    /// Its maker.
    pub vendor: Vendor,
    /// Its own memory in GiB, where that is known; one that shares the machine's memory has none.
    pub vram_gb: Option<f64>,
    /// The backend of its models: `cuda`, `rocm`, `metal`, `vulkan` or `sycl`.
    pub backend: &'static str,
    /// Whether models can be expected to run on it: it has the driver for that, and memory of its
    /// own or the machine's whole memory. Not so the small GPUs that are a part of processors.
    pub runs_models: bool,
}

/// The parts of a machine, in the words of a peer's `hello` and capabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The kind of its chip, one of stock peers' words: `nvidiaGPU` and `amdGPU` where such a GPU
    /// runs its models; else that of its processor: `m1` to `m4` with `Pro`, `Max` or `Ultra`,
    /// `intelCPU`, `amdCPU`, `armGeneric`; `unknown`.
    pub chip_family: &'static str,
    /// The name of that chip.
    pub chip_name: String,
    /// The name of its processor, where that is known.
    pub cpu_name: Option<String>,
    /// The number of its processors, as the system counts them; 0 when unknown.
    pub cpu_cores: u32,
    /// Its memory in GiB, or what its container may use of it; 0 when unknown.
    pub total_ram_gb: f64,
    /// Its GPUs: first the one that its models run on.
    pub gpus: Vec<Gpu>,
    /// Cores of the GPU that its models run on, as its maker counts them; 0 when unknown.
    pub gpu_core_count: u32,
    /// Memory of the GPUs that its models run on in GiB, all of the same maker's together; `None`
    /// without a GPU, or when its tool does not say.
    pub gpu_vram_gb: Option<f64>,
    /// How fast memory is read in 10⁹ bytes a second: of the chip that models run on. An estimate,
    /// by what is known of the chip or of its memory modules; 50 where nothing is.
    pub memory_bandwidth_gbs: f64,
    /// The backend of models: `cuda`, `rocm`, `metal`, `vulkan`, `sycl` or `cpu`.
    pub gpu_backend: &'static str,
    /// The operating system in stock peers' words: `linux`, `macOS`, `freebsd`, ….
    pub platform: &'static str,
}

impl Machine {
    /// How much it can be expected to do, 1 the most, 4 the least, by the rule of stock nodes on
    /// machines that are no telephones: an Ultra or Max chip, or 64 GiB of memory and more, is 1;
    /// 16 GiB and more 2; 6 GiB and more 3; less 4.
    #[must_use]
    pub fn tier(&self) -> u8 {
        let is_large_chip =
            self.chip_family.ends_with("Ultra") || self.chip_family.ends_with("Max");
        match self.total_ram_gb {
            _ if is_large_chip => 1,
            ram if ram >= 64.0 => 1,
            ram if ram >= 16.0 => 2,
            ram if ram >= 6.0 => 3,
            _ => 4,
        }
    }

    /// The largest model that it should be given, in GiB: the memory of its GPUs, or three
    /// quarters of its own.
    #[must_use]
    pub fn max_model_size_gb(&self) -> f64 {
        self.gpu_vram_gb.unwrap_or(self.total_ram_gb * SHARE_OF_RAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(chip_family: &'static str, total_ram_gb: f64, gpu_vram_gb: Option<f64>) -> Machine {
        Machine {
            chip_family,
            chip_name: "a chip".to_owned(),
            cpu_name: None,
            cpu_cores: 8,
            total_ram_gb,
            gpus: Vec::new(),
            gpu_core_count: 0,
            gpu_vram_gb,
            memory_bandwidth_gbs: 50.0,
            gpu_backend: "cpu",
            platform: "linux",
        }
    }

    #[test]
    fn the_tier_follows_the_rule_of_stock_nodes() {
        let tier = |family, ram| with(family, ram, None).tier();
        assert_eq!((tier("m2Ultra", 8.0), tier("m4Max", 8.0), tier("intelCPU", 64.0)), (1, 1, 1));
        assert_eq!((tier("intelCPU", 63.9), tier("m1", 16.0)), (2, 2));
        assert_eq!((tier("amdCPU", 15.9), tier("amdCPU", 6.0)), (3, 3));
        assert_eq!((tier("unknown", 5.9), tier("unknown", 0.0)), (4, 4));
    }

    #[test]
    fn a_model_may_take_the_gpus_memory_or_three_quarters_of_the_machines() {
        assert_eq!(with("nvidiaGPU", 64.0, Some(24.0)).max_model_size_gb(), 24.0);
        // As a stock node on such a machine says.
        let stock = with("intelCPU", 23.540584564208984, None);
        assert_eq!(stock.max_model_size_gb(), 17.65543842315674);
    }
}
