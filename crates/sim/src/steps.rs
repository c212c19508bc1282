//! Steps of an array, which work on bytes, where there are no bytes.
//!
//! Steps take no time: computing parity runs at many times the speed of a few disks. A step with a
//! result finds that everything fits and every byte is zero, so no check ever finds a mismatch.

use raidlab_array::{ComputeStep, StepId, StepResult};
use raidlab_units::Sectors;

/// The result of a step with an id.
pub(crate) fn answer(step: &ComputeStep) -> Option<(StepId, StepResult)> {
    match step {
        ComputeStep::Fetch { id, count, .. } => {
            let bytes = usize::try_from(count.to_bytes().0).unwrap_or(0);
            Some((*id, StepResult::Bytes(vec![0; bytes])))
        }
        ComputeStep::Compare { id, .. } => {
            let different = Sectors::ZERO;
            Some((*id, StepResult::Compared { different }))
        }
        ComputeStep::Check { id, .. } => {
            let fits = StepResult::Parity {
                p_different: Sectors::ZERO,
                q_different: Sectors::ZERO,
            };
            Some((*id, fits))
        }
        _ => None,
    }
}
