//! Seeds that failed once. They always run.

/// Each broke a rule while the rules were written: retired incarnations that were still written under,
/// doubled pulls, keys noted while they were listed, lives that were not above dropped ones, moves that
/// crossed a delete, two owners that each repeated their word, tombstones of earlier lives.
pub(crate) const SEEDS: [u64; 30] = [
    2, 29, 65, 157, 164, 179, 257, 307, 445, 669, 807, 924, 1057, 1800, 1929, 2107, 2657, 3429,
    4457, 17_357, 19_432, 25_437, 49_557, 50_583, 64_154, 66_718, 108_357, 114_629, 274_508,
    276_131,
];
