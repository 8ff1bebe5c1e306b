//! Search by number, reference, key, name, e-mail address or tax number.

use billing_domain::contract::Contract;
use billing_domain::document::numbering::{DocumentNumber, NumberEnd};
use billing_domain::ports::{SearchHit, SearchTerms};
use billing_domain::refs::DocumentRef;
use billing_domain::text::OneLine;

use crate::UseCase;
use crate::carry_out::Cx;
use crate::error::UseCaseResult;

/// The maximum number of search results.
pub const MAX_FOUND: u32 = 20;

/// Returns the resources whose number, reference, key, purchase order number, name, e-mail address or tax number equals a text.
/// Documents follow whose number ends with the text, and resources that have, for each word of the text, a word that starts with
/// it. API keys are found only by principals that may list them.
///
/// # Errors
/// Returns [`UseCaseError::Store`](crate::error::UseCaseError::Store) if the search fails.
pub fn search(cx: &mut Cx<'_>, text: &OneLine) -> UseCaseResult<Vec<SearchHit>> {
    let sought = SearchTerms {
        text: text.clone(),
        document_number: DocumentNumber::parse(&text.as_str().to_ascii_uppercase()),
        number_end: NumberEnd::parse(text.as_str()),
        contract_number: Contract::read_number(text.as_str()),
        id: DocumentRef::parse(text.as_str()).ok().map(DocumentRef::as_uuid),
        with_api_keys: cx.principal()?.has(UseCase::ListKeys.need()),
    };
    Ok(cx.tx.search(cx.organization, &sought, MAX_FOUND)?)
}
