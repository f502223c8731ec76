//! How to get a program that serves model files, on the system at hand.

use std::fs;

use super::{find::Places, program::KnownProgram};

/// The known facts about the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct System {
    is_mac: bool,
    is_windows: bool,
    /// `ID` of `/etc/os-release`.
    distribution: String,
    /// Whether its packages are those of Debian's next release: the only ones with llama.cpp among them.
    is_debian_next: bool,
    has_brew: bool,
    has_nix: bool,
    has_port: bool,
}

impl System {
    pub(crate) fn here(places: &Places) -> Self {
        let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let has = |program| places.find(program).is_some();
        Self {
            has_brew: has("brew"),
            has_nix: has("nix"),
            has_port: has("port"),
            is_windows: crate::system::IS_WINDOWS,
            ..Self::of(&text, crate::system::IS_MACOS)
        }
    }

    fn of(os_release: &str, is_mac: bool) -> Self {
        let value = |name: &str| {
            let line = os_release.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.strip_prefix('=')).map(|text| text.trim_matches('"'))
        };
        let distribution = value("ID").unwrap_or_default().to_owned();
        // Testing and unstable have no number yet.
        let is_debian_next = distribution == "debian" && value("VERSION_ID").is_none();
        Self { is_mac, distribution, is_debian_next, ..Self::default() }
    }
}

/// The advice when a program was not found.
pub(crate) fn advice(program: &str, known: Option<KnownProgram>, system: &System) -> String {
    let get = match known {
        Some(KnownProgram::LlamaServer) => llama_server(system),
        Some(KnownProgram::Vllm) => "install it with `pip install vllm`".to_owned(),
        Some(KnownProgram::MlxLm) => "install it with `pip install mlx-lm`, on a Mac".to_owned(),
        None => "install it".to_owned(),
    };
    format!(
        "{program} was not found on PATH nor at the usual places: {get}, or name its file with --engine PATH"
    )
}

fn llama_server(system: &System) -> String {
    let mut ways = Vec::new();
    if system.has_brew || system.is_mac {
        ways.push("`brew install llama.cpp`");
    }
    if system.is_windows {
        ways.push("`winget install llama.cpp`");
    }
    if system.has_port {
        ways.push("`sudo port install llama.cpp`");
    }
    if system.has_nix || system.distribution == "nixos" {
        ways.push("`nix profile install nixpkgs#llama-cpp`");
    }
    if system.is_debian_next {
        ways.push("`sudo apt install llama.cpp`");
    }
    let release = "unpack a release of https://github.com/ggml-org/llama.cpp/releases and put its folder on PATH";
    match ways.as_slice() {
        [] => format!("it is llama.cpp's server; {release}"),
        ways => {
            format!("it is llama.cpp's server; get it with {}, or {release}", ways.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_for(system: &System) -> String {
        advice("llama-server", Some(KnownProgram::LlamaServer), system)
    }

    #[test]
    fn only_what_works_on_this_system_is_proposed() {
        let stable = System::of("PRETTY_NAME=\"x\"\nID=debian\nVERSION_ID=\"12\"\n", false);
        let text = advice_for(&stable);
        assert!(text.contains("releases") && !text.contains("apt") && !text.contains("brew"));
        let next = System::of("ID=debian\nVERSION_CODENAME=forky\n", false);
        assert!(advice_for(&next).contains("sudo apt install llama.cpp"));
        assert!(advice_for(&System::of("ID=nixos\n", false)).contains("nix profile install"));
        assert!(advice_for(&System::of("", true)).contains("brew install llama.cpp"));
        let brewed = System { has_brew: true, ..stable };
        assert!(advice_for(&brewed).contains("brew install llama.cpp"));
    }

    #[test]
    fn other_programs_have_their_own_way() {
        let system = System::default();
        assert!(advice("vllm", Some(KnownProgram::Vllm), &system).contains("pip install vllm"));
        let other = advice("serve-it", None, &system);
        assert!(other.starts_with("serve-it was not found") && other.contains("--engine PATH"));
    }
}
