//! Usage products.

use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Aggregation, UsageProduct, UsageProductProfile};
use billing_domain::codes::UnitCode;
use billing_domain::labels::LabelKey;
use billing_domain::refs::UsageProductRef;
use billing_domain::text::OneLine;

use super::declare::{answer, body, edit, fields, ignore_response_fields};
use super::values::NewUsageProductRef;

fields! {
    edit answer UsageProductProfile {
        /// Name, which usage events can use instead of the reference.
        name: OneLine,
        /// Unit name on documents.
        unit: Option<OneLine>,
        /// Unit code (UN/ECE). Default: C62 (one).
        unit_code: UnitCode = UnitCode::ONE,
        /// How the quantities of a period are aggregated. MAX, LATEST and UNIQUE start at 0 in each period. Default: SUM.
        aggregation: Aggregation = Aggregation::default(),
        /// Label whose distinct values the aggregation UNIQUE counts: a key of additional_report_data.
        unique_by: Option<LabelKey>,
    }
    with {
        ignore_response_fields!(UsageProductJson);
    }
}

body! {
    /// A usage product to create.
    UsageProductBody {
        /// Reference. Default: assigned by the service.
        usage_product_ref: Option<NewUsageProductRef>,
        @flat profile: UsageProductProfile,
    }
    with {
        ignore_response_fields!(UsageProductJson);
    }
}

edit! {
    /// Changes to a usage product. Omitted fields stay unchanged; null clears a field or restores its default.
    UsageProductEditBody of UsageProductProfile named "usage_product_ref": UsageProductRef
}

answer! {
    /// A usage product.
    UsageProductJson of UsageProduct {
        /// Reference.
        usage_product_ref: UsageProductRef,
        @flat profile: UsageProductProfile,
        /// Time of the last change.
        updated_at: Timestamp,
    }
}
