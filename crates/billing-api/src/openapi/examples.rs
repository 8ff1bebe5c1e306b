//! Examples of each operation's request and response, recorded from one run. An HTTP test writes the file and verifies
//! that the server still responds this way.

use std::sync::LazyLock;

use serde_json::Value;

use crate::decimals;
use crate::operation::OperationSpec;

/// Examples by operation id, each with an optional `request` and `answer`.
static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("the examples are JSON"));

/// Returns the example request of an operation.
pub(super) fn request(operation: &OperationSpec) -> Option<Value> {
    of(operation, "request")
}

/// Returns the example of an operation's success response.
pub(super) fn answer(operation: &OperationSpec) -> Option<Value> {
    of(operation, "answer")
}

fn of(operation: &OperationSpec, part: &str) -> Option<Value> {
    EXAMPLES[operation.id].get(part).cloned()
}

/// Rewrites the decimals in a document's examples as strings.
pub(super) fn with_numbers_as_strings(document: &mut Value) {
    let described = document.clone();
    let operations = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    for operation in operations.filter_map(Value::as_object_mut).flat_map(|item| item.values_mut()) {
        for part in ["/requestBody/content", "/responses/200/content"] {
            let media_types = operation.pointer_mut(part).and_then(Value::as_object_mut);
            for media_type in media_types.into_iter().flat_map(|media_types| media_types.values_mut()) {
                let schema = media_type["schema"].clone();
                if let Some(example) = media_type.get_mut("example") {
                    decimals::rewrite(&described, &[&schema], example);
                }
            }
        }
    }
}
