//! Usage products.

use billing_domain::catalog::{Aggregation, UsageProduct, UsageProductProfile};
use billing_domain::codes::UnitCode;
use billing_domain::refs::UsageProductRef;
use billing_domain::text::OneLine;

use super::declare::{answer, body, edit, fields};

fields! {
    edit answer UsageProductProfile {
        /// Name; usage may be reported under it.
        name: OneLine,
        /// What one of it is called on a document.
        unit: Option<OneLine>,
        /// What one of it is, for machines; C62 (one) when left out.
        unit_code: UnitCode = UnitCode::ONE,
        /// How the quantities of a period become one; SUM when left out.
        aggregation: Aggregation = Aggregation::default(),
    }
}

body! {
    /// A usage product to make.
    UsageProductBody {
        /// Reference; assigned when left out.
        usage_product_ref: Option<UsageProductRef>,
        @flat profile: UsageProductProfile,
    }
}

edit! {
    /// Changes to a usage product: fields left out are kept, null clears or brings the default back.
    UsageProductEditBody of UsageProductProfile named "usage_product_ref": UsageProductRef
}

answer! {
    /// A usage product.
    UsageProductJson of UsageProduct {
        /// Reference.
        usage_product_ref: UsageProductRef,
        @flat profile: UsageProductProfile,
    }
}
