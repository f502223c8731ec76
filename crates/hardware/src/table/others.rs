//! Chips of Intel and Apple, and processors with built-in memory.

use super::Entry;

/// Intel's cards: GB/s, shading units.
pub(super) const INTEL_GPUS: &[Entry] = &[
    ("pro b60", 456, 2560),
    ("b580", 456, 2560),
    ("b570", 380, 2304),
    ("a770", 560, 4096),
    ("a750", 512, 3584),
    ("a580", 512, 3072),
    ("a380", 186, 1024),
];

/// Apple's chips: GB/s of the largest of each name. How many cores its GPU has, the name does not
/// tell.
pub(super) const APPLE_CHIPS: &[Entry] = &[
    ("m1 ultra", 800, 0),
    ("m1 max", 400, 0),
    ("m1 pro", 200, 0),
    ("m1", 68, 0),
    ("m2 ultra", 800, 0),
    ("m2 max", 400, 0),
    ("m2 pro", 200, 0),
    ("m2", 100, 0),
    ("m3 ultra", 819, 0),
    ("m3 max", 400, 0),
    ("m3 pro", 150, 0),
    ("m3", 100, 0),
    ("m4 max", 546, 0),
    ("m4 pro", 273, 0),
    ("m4", 120, 0),
    ("m5", 153, 0),
];

/// Processors and boards with soldered memory: GB/s.
pub(super) const PROCESSORS: &[Entry] = &[
    ("ryzen ai max", 256, 0),
    ("raspberry pi 5", 17, 0),
    ("raspberry pi 4", 12, 0),
    ("jetson agx orin", 204, 0),
    ("jetson orin", 102, 0),
];
