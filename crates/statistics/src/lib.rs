//! How sure a number is: confidence intervals, verdicts, steady state.
