//! Network interfaces, told apart by their names.

/// Beginnings of the names of interfaces that lead to containers, virtual machines and tunnels.
const VIRTUAL: [&str; 18] = [
    "docker",
    "veth",
    "virbr",
    "vmnet",
    "vboxnet",
    "podman",
    "cni",
    "flannel",
    "cali",
    "cilium",
    "lxc",
    "lxd",
    "tun",
    "tap",
    "utun",
    "wg",
    "tailscale",
    "ppp",
];

/// Whether an interface's name says that it leads to containers or into a tunnel. Nobody else is
/// there, and its addresses are of no use elsewhere.
#[must_use]
pub fn is_virtual(name: &str) -> bool {
    VIRTUAL.iter().any(|beginning| name.starts_with(beginning)) || is_docker_bridge(name)
}

/// `br-` and twelve hexadecimal digits. Other bridges may be a machine's way to its network.
fn is_docker_bridge(name: &str) -> bool {
    name.strip_prefix("br-")
        .is_some_and(|id| id.len() == 12 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_tunnels_are_told_from_networks_by_their_names() {
        for name in ["docker0", "br-0123456789ab", "veth1a2b", "tun0", "wg0", "tailscale0", "utun3"]
        {
            assert!(is_virtual(name), "{name}");
        }
        for name in ["eth0", "enp3s0", "wlan0", "en0", "br0", "br-lan", "bond0", "lo"] {
            assert!(!is_virtual(name), "{name}");
        }
    }
}
