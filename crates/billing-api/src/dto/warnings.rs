//! Warnings in responses.

use billing_domain::warning::Warning;

use super::declare::answer;
use super::wire::AssignedRef;

answer! {
    /// A possible mistake in an accepted request.
    WarningJson of warning: Warning {
        /// Stable code: `same_as`.
        #[schema(example = "same_as")]
        code: String = warning.code(),
        /// Reason and remedy.
        detail: String = warning.to_string(),
        /// Pointer to the field of the request (RFC 6901), if one field caused the warning.
        @omitted pointer: Option<String> = warning.pointer(),
        /// With `same_as`: the earlier contract.
        @omitted contract_ref: Option<AssignedRef> = warning.contract_ref(),
    }
}

impl WarningJson {
    /// Returns the warnings of a response, or `None` without a warning.
    pub fn any_of(warnings: &[Warning]) -> Option<Vec<Self>> {
        (!warnings.is_empty()).then(|| warnings.iter().map(Self::from).collect())
    }
}
