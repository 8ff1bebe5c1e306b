//! The documents and payments of an account by their references.

use super::*;

impl ReceivablesAccount {
    pub(super) fn known(&self, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
        let document = self.documents.get(&document_ref);
        document.ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the account")))
    }

    pub(super) fn known_mut(&mut self, document_ref: DocumentRef) -> Result<&mut BookDocument, Refusal> {
        let document = self.documents.get_mut(&document_ref);
        let document = document.ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the account")))?;
        if let Entry::Vacant(first) = self.before.entry(document_ref) {
            first.insert(document.owed()?);
        }
        Ok(document)
    }

    pub(super) fn known_payment(&self, payment_ref: PaymentRef) -> Result<&Payment, Refusal> {
        let payment = self.payments.get(&payment_ref);
        payment.ok_or_else(|| Refusal::Broken(format!("payment {payment_ref} isn't in the account")))
    }

    pub(super) fn known_payment_mut(&mut self, payment_ref: PaymentRef) -> Result<&mut Payment, Refusal> {
        let payment = self.payments.get_mut(&payment_ref);
        payment.ok_or_else(|| Refusal::Broken(format!("payment {payment_ref} isn't in the account")))
    }

    pub(super) fn zero(&self) -> Money {
        Money::zero(self.key.currency)
    }

    /// Parses an amount of the account's currency, which must be above zero.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `amount`.
    pub fn amount_of(&self, text: &str) -> Result<Money, Refusal> {
        self.key.amount_of(text)
    }
}
