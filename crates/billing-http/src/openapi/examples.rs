//! An example of each operation's request and answer: what one run asked and was answered. A test over HTTP holds that the
//! server answers so still, and writes the file.

use std::sync::LazyLock;

use serde_json::Value;

use crate::decimals;
use crate::operation::Operation;

/// By the operation's name; of each its `request` and its `answer`, where it has them.
static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("the examples are JSON"));

/// What is sent.
pub(super) fn request(operation: &Operation) -> Option<Value> {
    of(operation, "request")
}

/// What a success is.
pub(super) fn answer(operation: &Operation) -> Option<Value> {
    of(operation, "answer")
}

fn of(operation: &Operation, part: &str) -> Option<Value> {
    EXAMPLES[operation.id].get(part).cloned()
}

/// Writes the decimals of a document's examples as strings.
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
