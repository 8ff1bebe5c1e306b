//! The answer to a reversal or a refund.

use billing_application::documents::PaymentOutcome;
use serde::Serialize;
use utoipa::ToSchema;

use super::documents::DocumentJson;
use super::money::PaymentJson;

/// The document of a payment, or the payment of a deposit.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum PaymentOutcomeJson {
    /// The document that the payment is recorded on, or the refunded credit.
    Document(Box<DocumentJson>),
    /// For a deposit: the reversed payment or refund, or the new refund.
    Deposit(Box<PaymentJson>),
}

impl From<&PaymentOutcome> for PaymentOutcomeJson {
    fn from(outcome: &PaymentOutcome) -> Self {
        match outcome {
            PaymentOutcome::Document(document) => Self::Document(Box::new(DocumentJson::from(&**document))),
            PaymentOutcome::Deposit(payment) => Self::Deposit(Box::new(PaymentJson::from(&**payment))),
        }
    }
}
