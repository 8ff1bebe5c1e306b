//! Metadata as an object of texts.

use billing_domain::metadata::Metadata;

use super::column;

column!(
    /// The metadata of a customer, contract or payment.
    StoredMetadataRef, StoredMetadata: Metadata = "object"
);

mod object {
    use std::collections::BTreeMap;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Metadata;

    pub(super) fn serialize<S: Serializer>(metadata: &Metadata, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(metadata.entries())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metadata, D::Error> {
        Metadata::new(BTreeMap::<String, String>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
