//! Readable error messages of the language: the cause, and the position in the expression.

use billing_domain::format::SourcePosition;
use rhai::{EvalAltResult, ParseError, ParseErrorType, Position};

/// An error in an expression, before the expression is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EvaluationError {
    pub(crate) position: Option<SourcePosition>,
    pub(crate) reason: String,
}

impl EvaluationError {
    /// Creates an error with only a reason.
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self { position: None, reason: reason.into() }
    }
}

impl From<ParseError> for EvaluationError {
    fn from(error: ParseError) -> Self {
        let reason = match error.err_type() {
            ParseErrorType::Reserved(word) => format!("`{word}` is a reserved word; a field of that name is [\"{word}\"]"),
            other => other.to_string(),
        };
        Self { position: position(error.position()), reason }
    }
}

impl From<Box<EvalAltResult>> for EvaluationError {
    fn from(error: Box<EvalAltResult>) -> Self {
        Self { position: position(error.position()), reason: reason(*error) }
    }
}

fn position(at: Position) -> Option<SourcePosition> {
    let narrow = |n: Option<usize>| n.and_then(|n| u32::try_from(n).ok());
    Some(SourcePosition { line: narrow(at.line())?, column: narrow(at.position())? })
}

fn reason(mut error: EvalAltResult) -> String {
    match error {
        EvalAltResult::ErrorPropertyNotFound(field, _) => format!("unknown field `{field}`"),
        EvalAltResult::ErrorFunctionNotFound(signature, _) => format!("there is no function {}", readable(&signature)),
        EvalAltResult::ErrorMismatchDataType(wanted, given, _) | EvalAltResult::ErrorMismatchOutputType(wanted, given, _) => {
            format!("{} is wanted where {} is", readable(&wanted), readable(&given))
        }
        EvalAltResult::ErrorArrayBounds(length, index, _) => format!("there is no element {index} in a list of {length}"),
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => reason(*inner),
        EvalAltResult::ErrorRuntime(what, _) => what.to_string(),
        EvalAltResult::ErrorTooManyOperations(_) | EvalAltResult::ErrorTerminated(..) => "it takes too many steps".to_owned(),
        EvalAltResult::ErrorDataTooLarge(what, _) => format!("the result is too large: {what}"),
        _ => {
            error.clear_position();
            error.to_string()
        }
    }
}

/// Replaces rhai's type names with readable ones.
fn readable(names: &str) -> String {
    [
        ("&str | ImmutableString | String", "text"),
        ("string", "text"),
        ("decimal", "number"),
        ("i64", "number"),
        ("map", "object"),
        ("array", "list"),
    ]
    .into_iter()
    .fold(names.to_owned(), |text, (from, to)| text.replace(from, to))
}
