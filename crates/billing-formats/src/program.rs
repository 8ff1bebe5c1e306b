//! One compiled expression.

use std::fmt::Display;

use billing_domain::format::{Expression, FormatError, FormatTarget};
use rhai::{AST, Dynamic, Engine, Scope};

use crate::failure::EvaluationError;
use crate::source::{self, NamedValues};
use crate::values::{kind, shortened};

/// The variable of the event.
pub(crate) const EVENT: &str = "event";
/// The variable of an element of the event's list, in a mapping with `for_each`.
pub(crate) const ITEM: &str = "item";

/// A compiled expression with its target field.
#[derive(Debug)]
pub(crate) struct Program {
    target: FormatTarget,
    expression: Expression,
    ast: AST,
    /// The event's fields and the variables that the expression names.
    pub(crate) named: NamedValues,
}

impl Program {
    /// Compiles an expression over some variables.
    pub(crate) fn compile(
        engine: &Engine,
        target: FormatTarget,
        expression: &Expression,
        variables: &[&'static str],
    ) -> Result<Self, FormatError> {
        let parse = || {
            let named = source::named_values(expression.as_str())?;
            // In strict mode, variables outside this scope are unknown.
            let mut scope = Scope::new();
            for variable in variables {
                scope.push(*variable, Dynamic::UNIT);
            }
            let ast = engine.compile_expression_with_scope(&scope, expression.as_str()).map_err(EvaluationError::from)?;
            Ok((named, ast))
        };
        match parse() {
            Ok((named, ast)) => Ok(Self { target, expression: expression.clone(), ast, named }),
            Err(failure) => Err(error(target, expression, failure)),
        }
    }

    /// Evaluates the expression for the event in a scope.
    pub(crate) fn evaluate(&self, engine: &Engine, scope: &mut Scope) -> Result<Dynamic, FormatError> {
        let result = engine.eval_ast_with_scope::<Dynamic>(scope, &self.ast);
        result.map_err(|failed| self.error(EvaluationError::from(failed)))
    }

    /// Evaluates to a text, and fails if the result is missing.
    pub(crate) fn text(&self, engine: &Engine, scope: &mut Scope) -> Result<String, FormatError> {
        self.optional_text(engine, scope)?.ok_or_else(|| self.fail("has no value: text expected"))
    }

    /// Evaluates to a text or `None`.
    pub(crate) fn optional_text(&self, engine: &Engine, scope: &mut Scope) -> Result<Option<String>, FormatError> {
        let value = self.evaluate(engine, scope)?;
        if value.is_unit() {
            return Ok(None);
        }
        let given = kind(&value);
        value.into_string().map(Some).map_err(|_| self.fail(format!("gives {given}: text expected")))
    }

    /// Parses a resulting text with a parser of the domain.
    pub(crate) fn read<T, E: Display>(&self, text: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T, FormatError> {
        parse(text).map_err(|error| self.fail(format!("gives {}, which {error}", shortened(text))))
    }

    pub(crate) fn fail(&self, reason: impl Into<String>) -> FormatError {
        self.error(EvaluationError::because(reason))
    }

    fn error(&self, failure: EvaluationError) -> FormatError {
        error(self.target.clone(), &self.expression, failure)
    }
}

fn error(target: FormatTarget, expression: &Expression, failure: EvaluationError) -> FormatError {
    FormatError { target, expression: Some(expression.clone()), position: failure.position, reason: failure.reason }
}
