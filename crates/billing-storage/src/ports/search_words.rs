//! The words by which the search finds objects: written with the object, read by their beginning.
//!
//! A table of words works the same on both databases. An index of trigrams is an extension on PostgreSQL and a virtual table on
//! SQLite, and it returns many candidates for a short text.

use std::collections::BTreeSet;

use billing_domain::party::Customer;
use billing_domain::party::legal::VatId;
use billing_domain::ports::StoreResult;
use billing_domain::refs::OrganizationId;
use billing_domain::search_words;
use billing_domain::text::OneLine;
use diesel::prelude::*;
use diesel::sql_types::Text;

use super::lists::after_all_beginning;
use crate::schema::search_words as table;
use crate::sql_types::Bound;
use crate::statement::Statement;
use crate::tx::{Transaction, with_conn};

/// The maximum number of words that one statement examines, so that the cost of a search has a limit at any number of customers.
const MAX_EXAMINED: i64 = 1000;

/// Returns the words of a customer: those of its names and e-mail address, and its numbers, each as one word. A VAT number is found
/// without the letters of its country, too.
pub(super) fn words_of_customer(customer: &Customer) -> BTreeSet<String> {
    let profile = &customer.profile;
    let texts = [Some(&profile.name), profile.legal_name.as_ref(), profile.email.as_ref()];
    let mut words = search_words::words(texts.into_iter().flatten().map(OneLine::as_str));
    let numbers = [profile.tax_id.as_ref().map(OneLine::as_str), profile.legal.vat_id.as_ref().map(VatId::as_str)];
    words.extend(numbers.into_iter().flatten().filter_map(search_words::joined_word));
    if let Some(vat_id) = profile.legal.vat_id.as_ref().map(VatId::as_str) {
        let national = [vat_id.get(2..).unwrap_or_default(), vat_id.trim_start_matches(|c: char| c.is_ascii_uppercase())];
        words.extend(national.into_iter().filter_map(search_words::joined_word));
    }
    words
}

impl Transaction<'_> {
    /// Replaces the words of an object. `kind` is the table of the object.
    pub(super) fn put_words(
        &mut self,
        organization: OrganizationId,
        (kind, reference): (&'static str, &str),
        words: &BTreeSet<String>,
    ) -> StoreResult<()> {
        let owner = Bound(organization.as_uuid());
        let present: BTreeSet<String> = with_conn!(self, "search_words", |conn| table::table
            .filter(table::organization_id.eq(owner))
            .filter(table::kind.eq(kind))
            .filter(table::reference.eq(reference))
            .select(table::word)
            .load::<String>(conn))?
        .into_iter()
        .collect();
        for word in present.difference(words) {
            with_conn!(self, "search_words", |conn| diesel::delete(table::table.find((owner, kind, reference, word.as_str())))
                .execute(conn))?;
        }
        let added: Vec<&String> = words.difference(&present).collect();
        if !added.is_empty() {
            with_conn!(self, "search_words", |conn| {
                let rows = added.iter().map(|word| {
                    (
                        table::organization_id.eq(owner),
                        table::kind.eq(kind),
                        table::reference.eq(reference),
                        table::word.eq(word.as_str()),
                    )
                });
                diesel::insert_into(table::table).values(rows.collect::<Vec<_>>()).execute(conn)
            })?;
        }
        Ok(())
    }

    /// Returns the kind and reference of objects that have, for each of `words`, a word that starts with it. The matches of the
    /// first word are examined up to a limit.
    fn with_words(&mut self, organization: OrganizationId, words: &[&str], limit: u32) -> StoreResult<Vec<(String, String)>> {
        let Some((first, others)) = words.split_first() else { return Ok(Vec::new()) };
        let mut s: Statement<(Text, Text)> = Statement::new(
            "SELECT w.kind, w.reference FROM (SELECT word, kind, reference FROM search_words WHERE organization_id = ",
        );
        s.id(organization.as_uuid());
        push_word(&mut s, "word", first);
        s.sql(" ORDER BY word, kind, reference LIMIT ").number(MAX_EXAMINED).sql(") w");
        for (place, other) in others.iter().enumerate() {
            s.sql(if place == 0 { " WHERE" } else { " AND" });
            s.sql(" EXISTS (SELECT 1 FROM search_words o WHERE o.organization_id = ").id(organization.as_uuid());
            s.sql(" AND o.kind = w.kind AND o.reference = w.reference");
            push_word(&mut s, "o.word", other);
            s.sql(")");
        }
        s.sql(" ORDER BY w.word, w.kind, w.reference LIMIT ").number(i64::from(limit));
        with_conn!(self, "search_words", |conn| s.load(conn))
    }

    /// Returns the kind and reference of objects that match a text by their words.
    pub(super) fn by_words(
        &mut self,
        organization: OrganizationId,
        text: &str,
        limit: u32,
    ) -> StoreResult<Vec<(String, String)>> {
        let sought = search_words::sought_words(text);
        let mut words: Vec<&str> = sought.iter().map(String::as_str).collect();
        let mut found = Vec::new();
        // If the first word has too many matches, another one may have few.
        for _ in 0..words.len() {
            found = self.with_words(organization, &words, limit)?;
            if !found.is_empty() {
                break;
            }
            words.rotate_left(1);
        }
        if words.len() > 1
            && let Some(joined) = search_words::joined_word(text).filter(|joined| joined.contains(|c: char| c.is_ascii_digit()))
        {
            found.extend(self.with_words(organization, &[joined.as_str()], limit)?);
        }
        Ok(found)
    }
}

/// Restricts to words that start with a text.
fn push_word<R>(s: &mut Statement<R>, column: &'static str, start: &str) {
    s.sql(" AND ").sql(column).sql(" >= ").text(start);
    if let Some(end) = after_all_beginning(start) {
        s.sql(" AND ").sql(column).sql(" < ").text(end);
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::refs::OrganizationId;
    use uuid::Uuid;

    use crate::query_plans::plans_of;

    #[test]
    fn words_are_found_by_a_range_of_their_index() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let plans = plans_of(|tx| {
            assert_eq!(tx.by_words(organization, "harbor robot", 20).expect("a search"), []);
        });
        let steps: Vec<&String> = plans.iter().flat_map(|plan| &plan.steps).collect();
        let by_word = "search_words_by_word (organization_id=? AND word>? AND word<?)";
        assert!(steps.iter().any(|step| step.contains(by_word)), "{steps:?}");
        assert!(steps.iter().all(|step| !step.starts_with("SCAN search_words")), "{steps:?}");
    }
}
