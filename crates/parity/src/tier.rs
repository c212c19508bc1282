//! The tiers, and which one this process uses.

use crate::Kernels;
use crate::kernels::Table;
use std::sync::OnceLock;

/// The environment variable that forces a tier, for tests and measurements: one of [`Tier::name`].
pub const SIMD_VARIABLE: &str = "RAIDLAB_SIMD";

/// A set of kernels for processors with certain instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// 64-bit integers; the compiler may use what its target has.
    Portable,
    /// 64-bit Arm with NEON: 128 bits.
    Neon,
    /// x86-64 with SSSE3: 128 bits.
    Ssse3,
    /// x86-64 with AVX2: 256 bits.
    Avx2,
    /// x86-64 with AVX2 and GFNI: 256 bits.
    Avx2Gfni,
    /// x86-64 with AVX-512F and BW: 512 bits.
    Avx512,
    /// x86-64 with AVX-512F, BW and GFNI: 512 bits.
    Avx512Gfni,
}

/// The reason why a tier cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierError {
    /// No tier has this name.
    Unknown(String),
    /// The processor, or this build's architecture, lacks the instructions.
    Unsupported(Tier),
}

impl std::error::Error for TierError {}

impl std::fmt::Display for TierError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names = Tier::ALL.map(Tier::name).join(", ");
                write!(formatter, "no SIMD tier {name:?} (there are {names})")
            }
            Self::Unsupported(tier) => {
                write!(formatter, "this processor has no SIMD tier {tier}")
            }
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl std::str::FromStr for Tier {
    type Err = TierError;

    fn from_str(name: &str) -> Result<Self, TierError> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.name() == name)
            .ok_or_else(|| TierError::Unknown(name.to_owned()))
    }
}

impl Tier {
    /// Every tier of all architectures; those of one architecture from slow to fast.
    pub const ALL: [Self; 7] = [
        Self::Portable,
        Self::Neon,
        Self::Ssse3,
        Self::Avx2,
        Self::Avx2Gfni,
        Self::Avx512,
        Self::Avx512Gfni,
    ];

    /// Returns the tier's name in [`SIMD_VARIABLE`] and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Ssse3 => "ssse3",
            Self::Avx2 => "avx2",
            Self::Avx2Gfni => "avx2-gfni",
            Self::Avx512 => "avx512bw",
            Self::Avx512Gfni => "avx512bw-gfni",
        }
    }

    /// Whether a processor that can run this tier should use it unless forced to another.
    ///
    /// Older processors with AVX-512 lower their clock for 512-bit instructions, at the cost of
    /// everything else that runs; Linux's x86 crypto code avoids them up to Ice Lake and Tiger Lake
    /// (`X86_FEATURE_PREFER_YMM`). Processors since Sapphire Rapids and Zen 4 have BF16, which the
    /// older ones, Cooper Lake apart, have not.
    fn is_preferred(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx512Gfni => is_x86_feature_detected!("avx512bf16"),
            _ => true,
        }
    }

    /// Returns the kernels of the tier; `None` if this processor cannot run them.
    #[must_use]
    pub fn kernels(self) -> Option<Kernels> {
        let table = Table::of(self)?;
        Some(Kernels { tier: self, table })
    }
}

/// Returns the tiers that this processor can run, slowest first.
#[must_use]
pub fn tiers_available() -> Vec<Tier> {
    Tier::ALL
        .into_iter()
        .filter(|tier| tier.kernels().is_some())
        .collect()
}

/// Returns the tier that the functions of this crate use.
#[must_use]
pub fn tier() -> Tier {
    Kernels::chosen().tier()
}

/// Returns the tier that [`SIMD_VARIABLE`] forces: `None` if it is unset or empty.
///
/// The functions of this crate cannot report an error, so they ignore a name for which this
/// function returns one and choose by themselves; a program that wants to refuse such a name calls
/// this function when it starts.
///
/// # Errors
/// When the variable names no tier, or one that this processor cannot run.
pub fn forced() -> Result<Option<Tier>, TierError> {
    let Some(name) = std::env::var_os(SIMD_VARIABLE) else {
        return Ok(None);
    };
    parse_forced(&name.to_string_lossy())
}

fn parse_forced(name: &str) -> Result<Option<Tier>, TierError> {
    if name.is_empty() {
        return Ok(None);
    }
    let tier: Tier = name.parse()?;
    match tier.kernels() {
        Some(_) => Ok(Some(tier)),
        None => Err(TierError::Unsupported(tier)),
    }
}

impl Kernels {
    /// Returns the kernels that the functions of this crate use: those of the [`forced`] tier, else
    /// of the fastest (512 bits only on processors that do not slow down for them). They are chosen
    /// at the first call.
    #[must_use]
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Kernels> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let by_itself = Tier::ALL
                .into_iter()
                .rev()
                .filter(|tier| tier.is_preferred());
            let forced = forced().ok().flatten();
            forced
                .into_iter()
                .chain(by_itself)
                .find_map(Tier::kernels)
                .expect("every processor has the portable tier")
        })
    }

    /// Returns the tier of these kernels.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }
}

#[cfg(test)]
mod tests;
