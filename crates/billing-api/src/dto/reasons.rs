//! Error codes for the domain's parse errors.

use std::fmt::Display;

use billing_domain::calendar::CalendarError;
use billing_domain::codes::FormError;
use billing_domain::credit::unit::CreditUnitsError;
use billing_domain::decimal::DecimalError;
use billing_domain::format::ExpressionError;
use billing_domain::idempotency::IdempotencyKeyError;
use billing_domain::labels::LabelKeyError;
use billing_domain::metadata::MetadataError;
use billing_domain::money::UnknownCurrency;
use billing_domain::party::NumberPrefixError;
use billing_domain::refs::RefError;
use billing_domain::text::TextError;
use billing_domain::usage::ReportKeyError;
use billing_domain::webhook::{UnknownEventType, WebhookUrlError};
use billing_import::{ColumnMapError, ConstantFieldsError, DecimalSeparatorError, DelimiterError, FileNameError};

use crate::logo::LogoError;

/// A parse error. It displays the expected form.
pub trait Reason: Display {
    /// Stable error code.
    fn code(&self) -> &'static str {
        "invalid_format"
    }
}

impl Reason for RefError {}
impl Reason for UnknownCurrency {}
impl Reason for ExpressionError {}
impl Reason for NumberPrefixError {}
impl Reason for FileNameError {}
impl Reason for DecimalSeparatorError {}
impl Reason for DelimiterError {}
impl Reason for ColumnMapError {}
impl Reason for ConstantFieldsError {}
impl Reason for LabelKeyError {}

impl Reason for TextError {
    fn code(&self) -> &'static str {
        match self {
            Self::Empty => "too_short",
            Self::TooLong => "too_long",
            Self::Invisible(_) => "invalid_format",
        }
    }
}

impl Reason for IdempotencyKeyError {
    fn code(&self) -> &'static str {
        match self {
            Self::Empty => "too_short",
            Self::TooLong => "too_long",
            Self::ControlCharacter => "invalid_format",
        }
    }
}

impl Reason for DecimalError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotANumber => "invalid_format",
            Self::Negative | Self::Zero | Self::TooManyDigits { .. } | Self::TooLarge { .. } | Self::OutOfRange { .. } => {
                "out_of_range"
            }
        }
    }
}

impl Reason for CalendarError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotATimestamp | Self::NotADate | Self::NotATimeZone => "invalid_format",
            Self::OutOfRange => "out_of_range",
        }
    }
}

impl Reason for LogoError {
    fn code(&self) -> &'static str {
        Self::code(self)
    }
}

impl Reason for FormError {
    fn code(&self) -> &'static str {
        self.code
    }
}

impl Reason for MetadataError {
    fn code(&self) -> &'static str {
        match self {
            Self::TooManyKeys => "too_many",
            Self::Key | Self::Value => "invalid_format",
        }
    }
}

impl Reason for CreditUnitsError {
    fn code(&self) -> &'static str {
        match self {
            Self::TooMany => "too_many",
            Self::Free => "out_of_range",
        }
    }
}

impl Reason for WebhookUrlError {
    fn code(&self) -> &'static str {
        "invalid_url"
    }
}

impl Reason for UnknownEventType {
    fn code(&self) -> &'static str {
        "unknown_event_type"
    }
}

impl Reason for ReportKeyError {
    fn code(&self) -> &'static str {
        match self {
            Self::TooMany => "too_many",
            Self::Invalid(_) => "invalid_format",
        }
    }
}
