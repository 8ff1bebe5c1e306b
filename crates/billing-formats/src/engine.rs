//! The expression language: the allowed subset of rhai. Only functions registered here and language features not
//! disabled below are available.

use rhai::{Dynamic, Engine, OptimizationLevel};

use crate::values::{LongNumber, MAX_EVENT_BYTES, MAX_EVENT_VALUES};
use crate::{budget, functions, operators};

const MAX_EXPRESSION_DEPTH: usize = 32;
/// Without loops, an expression of 2 KiB cannot reach this limit; the shared budget of all expressions is lower.
const MAX_STEPS: u64 = 100_000;

/// Keywords and operators that are useless or misleading in an expression. For example, `switch` does not match the
/// decimal 200 with the literal `200`, and bit operations on decimals are meaningless.
const DISABLED: [&str; 24] = [
    "eval",
    "print",
    "debug",
    "switch",
    "this",
    "is_def_var",
    "is_shared",
    "type_of",
    "=",
    "+=",
    "-=",
    "*=",
    "/=",
    "%=",
    "**",
    "**=",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "..",
    "..=",
    "?[",
];

/// Creates an engine with only our operators and functions.
pub(crate) fn build() -> Engine {
    let mut engine = Engine::new_raw();
    engine
        .set_max_expr_depths(MAX_EXPRESSION_DEPTH)
        .set_max_operations(MAX_STEPS)
        // rhai adds up the texts in a list or an object, and the event is an object.
        .set_max_string_size(MAX_EVENT_BYTES)
        .set_max_array_size(MAX_EVENT_VALUES)
        .set_max_map_size(MAX_EVENT_VALUES)
        .set_strict_variables(true)
        .set_fail_on_invalid_map_property(true)
        .set_allow_looping(false)
        .set_allow_loop_expressions(false)
        .set_allow_statement_expression(false)
        .set_allow_switch_expression(false)
        // rhai's operators use integer division and round products; ours replace them.
        .set_fast_operators(false)
        .set_optimization_level(OptimizationLevel::None)
        .on_progress(|_| if budget::step() { None } else { Some(Dynamic::UNIT) });
    for symbol in DISABLED {
        engine.disable_symbol(symbol);
    }
    engine.register_type_with_name::<LongNumber>("number with too many digits");
    operators::register(&mut engine);
    functions::register(&mut engine);
    engine
}
