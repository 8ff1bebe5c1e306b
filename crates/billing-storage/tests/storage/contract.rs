//! The ports' contract suite on both databases.

mod sqlite {
    billing_testkit::store_contract!(crate::support::sqlite());
}

mod postgres {
    billing_testkit::store_contract!(crate::support::postgres());
}
