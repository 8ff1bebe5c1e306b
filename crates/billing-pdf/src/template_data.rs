//! The data of a document's template: texts in the document's language, by position. This module determines the content
//! of a document, the template its layout.

use billing_domain::document::legal_particulars::{CorrectedDocument, LegalParticulars, PartyDetails};
use billing_domain::document::lines::DocumentLine;
use billing_domain::document::printout::Printout;
use billing_domain::document::totals::{BilledProduct, DocumentContent, Tax};
use billing_domain::document::{DocumentKind, Purpose};
use billing_domain::money::{Currency, Money, MoneyError, Percentage};
use billing_domain::party::Address;
use billing_domain::party::bank::BankAccountProfile;
use billing_domain::party::legal::{PaperSize, tax_label};
use billing_domain::ports::PrintError;
use billing_domain::rating::RatedTier;
use billing_domain::tax::{TaxBasis, TaxCategory, TaxInCurrency, TaxTreatment};
use rust_decimal::Decimal;
use serde::Serialize;

use crate::figures::Figures;
use crate::translations::Translations;

/// The maximum number of lines that are printed individually.
pub(crate) const MOST_LINES: usize = 500;
/// The maximum length of a name in the footer, which has space for one line only.
const FOOT_CHARS: usize = 60;

type PrintResult<T> = Result<T, PrintError>;

/// The data of the template.
#[derive(Debug, Serialize)]
pub(crate) struct TemplateData {
    language: &'static str,
    paper: &'static str,
    /// The title in the file's metadata.
    title: String,
    heading: &'static str,
    number: String,
    /// The watermark on each page.
    stamp: Option<&'static str>,
    letterhead: Text,
    seller: Party,
    customer: Party,
    facts: Vec<Entry>,
    columns: [String; 4],
    products: Vec<Product>,
    sums: Vec<Entry>,
    /// The last entry of the totals.
    total: Entry,
    /// The reasons for tax exemptions.
    reasons: Vec<Text>,
    payment: Option<Block>,
    notes: Option<Notes>,
    foot: String,
    page: [&'static str; 2],
}

/// A labeled value.
#[derive(Debug, Serialize)]
struct Entry {
    label: String,
    value: Text,
}

#[derive(Debug, Serialize)]
struct Party {
    label: &'static str,
    name: Text,
    lines: Vec<Text>,
    numbers: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Product {
    name: Text,
    /// The tax of the product, if the document has several taxes.
    tax: Option<String>,
    lines: Vec<Line>,
    sums: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: Text,
    period: String,
    quantity: Option<String>,
    price: Option<String>,
    amount: String,
    /// The calculation of the amount: each quantity step or tier with its part.
    details: Vec<Detail>,
}

#[derive(Debug, Serialize)]
struct Detail {
    what: String,
    amount: Option<String>,
}

#[derive(Debug, Serialize)]
struct Block {
    label: &'static str,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Notes {
    label: &'static str,
    paragraphs: Vec<Vec<Text>>,
}

/// A user's text, which may be broken if it is wider than its space.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Text(String);

/// The number of unbreakable characters that fit into half a page.
const WIDE: usize = 40;
/// The number of unbreakable characters that fit into a third of a page.
const NARROW: usize = 20;

impl Text {
    fn new(text: &str) -> Self {
        Self::within(WIDE, text)
    }

    fn within(room: usize, text: &str) -> Self {
        let mut broken = String::with_capacity(text.len());
        let mut unbroken = 0;
        // The byte order mark is invisible and not allowed in archival PDF.
        for c in text.chars().filter(|c| *c != '\u{feff}') {
            unbroken = if c.is_whitespace() || c == '-' { 0 } else { unbroken + 1 };
            if unbroken > room && c.is_alphanumeric() {
                broken.push('\u{200b}');
                unbroken = 1;
            }
            broken.push(c);
        }
        Self(broken)
    }

    /// Returns the lines of a text that are not empty.
    fn lines(text: &str) -> impl Iterator<Item = Self> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Self::new)
    }
}

impl Entry {
    fn new(label: impl Into<String>, value: &str) -> Self {
        Self { label: label.into(), value: Text::new(value) }
    }

    /// Creates an entry for a formatted number or date, which is never broken.
    fn figure(label: impl Into<String>, value: String) -> Self {
        Self { label: label.into(), value: Text(value) }
    }

    /// Creates an entry for a narrow space.
    fn narrow(label: &str, value: &str) -> Self {
        Self { label: label.to_owned(), value: Text::within(NARROW, value) }
    }

    fn maybe(label: &str, value: Option<&str>) -> Option<Self> {
        value.map(|value| Self::new(label, value))
    }
}

/// The builder of a document's template data.
struct Writer<'p> {
    printout: &'p Printout,
    paper: Option<&'p LegalParticulars>,
    words: &'static Translations,
    figures: Figures,
    currency: Currency,
    tax_label: String,
}

impl TemplateData {
    /// Creates the template data of a document.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a library fails.
    pub(crate) fn of(printout: &Printout) -> PrintResult<Self> {
        let paper = printout.said.paper.as_deref();
        let language = paper.map(|paper| paper.language).unwrap_or_default();
        let size = paper.map_or(PaperSize::A4, |paper| paper.size);
        let label = paper.map_or_else(|| tax_label(None), |paper| paper.tax_label.clone());
        let writer = Writer {
            printout,
            paper,
            words: Translations::of(language),
            figures: Figures::of(language, size)?,
            currency: printout.head.currency,
            tax_label: label.as_str().to_owned(),
        };
        writer.sheet(size)
    }
}

impl Writer<'_> {
    fn sheet(&self, size: PaperSize) -> PrintResult<TemplateData> {
        let (words, said, kind) = (self.words, &self.printout.said, self.printout.head.kind);
        let (parties, content) = (&said.parties, &said.content);
        let number = self.printout.head.number.to_string();
        let heading = words.title(kind);
        let seller_name = parties.entity_legal_name.as_ref().unwrap_or(&parties.entity_name).as_str();
        let customer_name = parties.customer_legal_name.as_ref().unwrap_or(&parties.customer_name).as_str();
        let (seller, customer) = (self.paper.map(|paper| &paper.entity), self.paper.map(|paper| &paper.customer));
        Ok(TemplateData {
            language: words.code,
            paper: match size {
                PaperSize::A4 => "a4",
                PaperSize::Letter => "us-letter",
            },
            title: format!("{heading} {number}"),
            heading,
            stamp: self.printout.issued.is_none().then_some(words.draft),
            letterhead: Text::new(parties.entity_name.as_str()),
            seller: self.party(words.seller, seller_name, seller, self.contact()),
            customer: self.party(words.customer, customer_name, customer, Vec::new()),
            facts: self.facts()?,
            columns: [
                words.description.to_owned(),
                words.quantity.to_owned(),
                words.unit_price.to_owned(),
                format!("{} ({})", words.amount, self.currency),
            ],
            products: self.products(content)?,
            sums: self.sums(content)?,
            total: self.total(content)?,
            reasons: self.reasons(content),
            payment: self.payment(&number),
            notes: self.notes(),
            foot: format!("{} · {heading} {number}", shortened(seller_name)),
            page: words.page,
            number,
        })
    }

    fn party(&self, label: &'static str, name: &str, details: Option<&PartyDetails>, more: Vec<Entry>) -> Party {
        let words = self.words;
        let address = details.and_then(|details| details.address.as_ref());
        let numbers = details.map(|details| {
            [
                Entry::maybe(words.vat_id, details.vat_id.as_ref().map(|vat_id| vat_id.as_str())),
                Entry::maybe(words.tax_id, details.tax_id.as_ref().map(|tax_id| tax_id.as_str())),
                Entry::maybe(words.registration, details.registration.as_ref().map(|registration| registration.value.as_str())),
            ]
        });
        let numbers = numbers.into_iter().flatten().flatten().chain(more).collect();
        Party { label, name: Text::new(name), lines: address.map(address_lines).unwrap_or_default(), numbers }
    }

    /// Returns the seller's contact for payers.
    fn contact(&self) -> Vec<Entry> {
        let Some(contact) = self.paper.and_then(|paper| paper.contact.as_ref()) else { return Vec::new() };
        let said = [&contact.name, &contact.phone, &contact.email].into_iter().flatten();
        // Only the first entry has a label, because the others are self-explanatory.
        said.zip([self.words.contact, "", ""]).map(|(said, label)| Entry::new(label, said.as_str())).collect()
    }

    fn facts(&self) -> PrintResult<Vec<Entry>> {
        let (words, head, said) = (self.words, &self.printout.head, &self.printout.said);
        let mut facts = vec![Entry::narrow(words.number, &head.number.to_string())];
        if let Some(issued) = self.printout.issued {
            facts.push(Entry::narrow(words.issue_date, &self.figures.date(issued.issue_date)?));
            if let Some(due_date) = issued.due_date {
                facts.push(Entry::narrow(words.due_date, &self.figures.date(due_date)?));
            }
        }
        facts.push(Entry::narrow(words.service_period, &self.figures.period(head.period)?));
        if let Some(corrected) = self.paper.and_then(|paper| paper.corrects.as_ref()) {
            let mut shown = self.corrected(corrected)?;
            if let Some(last) = self.paper.and_then(|paper| paper.corrects_last.as_ref()) {
                shown = format!("{shown} – {}", self.corrected(last)?);
            }
            facts.push(Entry::narrow(words.corrects, &shown));
        }
        facts.extend(said.po_number.as_ref().map(|number| Entry::narrow(words.po_number, number.as_str())));
        let reference = self.paper.and_then(|paper| paper.buyer_reference.as_ref());
        facts.extend(reference.map(|reference| Entry::narrow(words.buyer_reference, reference.as_str())));
        Ok(facts)
    }

    fn corrected(&self, corrected: &CorrectedDocument) -> PrintResult<String> {
        Ok(format!("{}, {}", corrected.number, self.figures.date(corrected.issue_date)?))
    }

    fn products(&self, content: &DocumentContent) -> PrintResult<Vec<Product>> {
        let shows_sums = content.products.len() > 1;
        let is_long = content.products.iter().map(|product| product.lines.len()).sum::<usize>() > MOST_LINES;
        let shows_tax = content.taxes.len() > 1;
        let product = |product: &BilledProduct| {
            let lines = if is_long {
                self.all_lines(product)?.into_iter().collect()
            } else {
                product.lines.iter().map(|line| self.line(line)).collect::<PrintResult<_>>()?
            };
            let mut sums = Vec::new();
            if shows_sums && product.discount.minor() != 0 {
                sums.push(Entry::figure(
                    self.discount_name(product.rates.discount)?,
                    self.figures.amount(self.negated(product.discount)?)?,
                ));
                sums.push(Entry::figure(self.words.net, self.figures.amount(product.net)?));
            }
            let tax = if shows_tax { Some(self.tax_name(product.rates.tax.rate)?) } else { None };
            Ok(Product { name: Text::new(product.name.as_str()), tax, lines, sums })
        };
        content.products.iter().map(product).collect()
    }

    /// Returns one line that replaces all lines of a product.
    fn all_lines(&self, product: &BilledProduct) -> PrintResult<Option<Line>> {
        let Some(first) = product.lines.iter().map(|line| line.service_period.start()).min() else { return Ok(None) };
        let last = product.lines.iter().map(|line| line.service_period.last_day()).max().unwrap_or(first);
        let count = self.figures.number(Decimal::from(product.lines.len()))?;
        Ok(Some(Line {
            name: Text(self.words.lines.replace("{}", &count)),
            period: format!("{} – {}", self.figures.date(first)?, self.figures.date(last)?),
            quantity: None,
            price: None,
            amount: self.figures.amount(product.sub_total)?,
            details: Vec::new(),
        }))
    }

    fn line(&self, line: &DocumentLine) -> PrintResult<Line> {
        let figures = &self.figures;
        let counted = |quantity: Decimal, unit: Option<&str>| {
            let quantity = figures.number(quantity)?;
            Ok(unit.map_or(quantity.clone(), |unit| format!("{quantity} {unit}")))
        };
        let mut details = Vec::new();
        let (quantity, price) = match (&line.usage, &line.charge, line.quantities.as_slice()) {
            (Some(usage), _, _) => {
                for tier in &usage.tiers {
                    details.push(self.tier(tier)?);
                }
                let price = usage.unit_price.map(|price| figures.price(price.as_decimal(), self.currency)).transpose()?;
                let unit = usage.unit.as_ref().map(|unit| unit.as_str());
                (Some(counted(usage.quantity, unit)?), price)
            }
            (None, Some(charge), _) => {
                let unit = charge.unit.as_ref().map(|unit| unit.as_str());
                let price = figures.price(charge.unit_price.as_decimal(), self.currency)?;
                (Some(counted(charge.quantity.as_decimal(), unit)?), Some(price))
            }
            // A part of a price is not one unit, because another document has the rest.
            (None, None, []) if line.line_item_id.is_none() || !self.is_regular() => (None, None),
            (None, None, []) => (Some(figures.number(Decimal::ONE)?), None),
            (None, None, [step]) => (Some(counted(step.quantity.as_decimal(), None)?), None),
            (None, None, steps) => {
                for step in steps {
                    let since = self.words.from.replace("{}", &figures.date(step.from)?);
                    let what = format!("{} {since}", counted(step.quantity.as_decimal(), None)?);
                    details.push(Detail { what, amount: None });
                }
                (None, None)
            }
        };
        let name = if line.line_item_id.is_none() { self.words.minimum_fee } else { line.name.as_str() };
        let period = match &line.charge {
            Some(charge) => figures.date(charge.date)?,
            None => figures.period(line.service_period)?,
        };
        Ok(Line { name: Text::new(name), period, quantity, price, amount: figures.amount(line.amount)?, details })
    }

    fn is_regular(&self) -> bool {
        matches!(self.printout.head.purpose, Purpose::Regular(_)) && self.printout.head.kind == DocumentKind::Invoice
    }

    fn tier(&self, rated: &RatedTier) -> PrintResult<Detail> {
        let price = |price: Decimal| self.figures.price(price, self.currency);
        let quantity = self.figures.number(rated.quantity)?;
        let mut what = format!("{quantity} × {}", price(rated.tier.unit_price.as_decimal())?);
        let flat = rated.tier.flat_amount.as_decimal();
        if !flat.is_zero() {
            what = format!("{what} + {}", price(flat)?);
        }
        Ok(Detail { what, amount: Some(price(rated.amount)?) })
    }

    fn sums(&self, content: &DocumentContent) -> PrintResult<Vec<Entry>> {
        let (words, figures) = (self.words, &self.figures);
        let mut sums = Vec::new();
        let is_discounted = content.total_discount.minor() != 0;
        if is_discounted {
            sums.push(Entry::figure(words.sub_total, figures.money(content.sub_total)?));
            let name = match content.products.as_slice() {
                [product] => self.discount_name(product.rates.discount)?,
                _ => words.discount.to_owned(),
            };
            sums.push(Entry::figure(name, figures.money(self.negated(content.total_discount)?)?));
        }
        let taxes: Vec<&Tax> = content.taxes.iter().filter(|tax| is_shown(tax)).collect();
        if is_discounted || !taxes.is_empty() {
            let net = content.sub_total.checked_sub(content.total_discount).map_err(unsummed)?;
            sums.push(Entry::figure(words.net, figures.money(net)?));
        }
        for tax in taxes {
            let label = format!("{}{}{}", self.tax_name(tax.treatment.rate)?, words.tax_on, figures.amount(tax.base)?);
            sums.push(Entry::figure(label, figures.money(tax.amount)?));
        }
        if let Some(TaxInCurrency { rate, total, amounts: _ }) = self.paper.and_then(|paper| paper.tax_in_currency.as_ref()) {
            let converted = figures.price(rate.rate.as_decimal(), rate.to)?;
            let how = format!("1 {} = {converted} {}, {}", rate.from, rate.to, figures.date(rate.date)?);
            let label = format!("{}{}{} ({how})", self.tax_label, words.tax_in, rate.to);
            sums.push(Entry::figure(label, figures.money(*total)?));
        }
        sums.push(Entry::figure(words.total, figures.money(content.total)?));
        Ok(sums)
    }

    /// Returns the total. A newly issued document has no payments yet.
    fn total(&self, content: &DocumentContent) -> PrintResult<Entry> {
        let label = match self.printout.head.kind {
            DocumentKind::Credit => self.words.credited,
            DocumentKind::Invoice | DocumentKind::Debit => self.words.amount_due,
        };
        Ok(Entry::figure(label, self.figures.money(content.total)?))
    }

    /// Returns the distinct reasons for tax exemptions.
    fn reasons(&self, content: &DocumentContent) -> Vec<Text> {
        let mut reasons: Vec<String> = Vec::new();
        let mut add = |reason: String| {
            if !reasons.iter().any(|known| known.eq_ignore_ascii_case(&reason)) {
                reasons.push(reason);
            }
        };
        for Tax { treatment, .. } in &content.taxes {
            if treatment.basis.category == Some(TaxCategory::Ae) {
                add(self.words.reverse_charge.to_owned());
            }
            if let Some(reason) = reason_of(&treatment.basis) {
                add(reason.to_owned());
            }
        }
        reasons.iter().map(|reason| Text::new(reason)).collect()
    }

    fn payment(&self, number: &str) -> Option<Block> {
        let owed = self.printout.head.kind != DocumentKind::Credit;
        let account = self.paper.and_then(|paper| paper.bank_account.as_ref()).filter(|_| owed)?;
        let words = self.words;
        let BankAccountProfile { account_name, iban, account_number, routing_number, bic, bank_name } = account;
        let iban = iban.as_ref().map(|iban| in_groups(iban.as_str()));
        let entries = [
            Entry::maybe(words.account_name, account_name.as_ref().map(|name| name.as_str())),
            iban.map(|iban| Entry::figure("IBAN", iban)),
            Entry::maybe(words.account_number, account_number.as_ref().map(|number| number.as_str())),
            Entry::maybe(words.routing_number, routing_number.as_ref().map(|number| number.as_str())),
            Entry::maybe("BIC", bic.as_ref().map(|bic| bic.as_str())),
            Entry::maybe(words.bank, bank_name.as_ref().map(|name| name.as_str())),
            Some(Entry::new(words.payment_reference, number)),
        ];
        Some(Block { label: words.payment, entries: entries.into_iter().flatten().collect() })
    }

    fn notes(&self) -> Option<Notes> {
        let legal = self.paper.into_iter().flat_map(|paper| &paper.legal_notes).map(|note| note.text.as_str());
        let notes = self.printout.said.note.iter().map(|note| note.as_str()).chain(legal);
        let paragraphs: Vec<Vec<Text>> = notes.map(|note| Text::lines(note).collect()).collect();
        (!paragraphs.is_empty()).then_some(Notes { label: self.words.notes, paragraphs })
    }

    fn negated(&self, amount: Money) -> PrintResult<Money> {
        Money::zero(self.currency).checked_sub(amount).map_err(unsummed)
    }

    fn percent(&self, rate: Percentage) -> PrintResult<String> {
        Ok(format!("{}{}", self.figures.number(rate.as_decimal())?, self.words.percent))
    }

    fn discount_name(&self, rate: Percentage) -> PrintResult<String> {
        Ok(format!("{} {}", self.words.discount, self.percent(rate)?))
    }

    fn tax_name(&self, rate: Percentage) -> PrintResult<String> {
        Ok(format!("{} {}", self.tax_label, self.percent(rate)?))
    }
}

fn unsummed(error: MoneyError) -> PrintError {
    PrintError::Failed(error.to_string())
}

/// Returns whether a tax is printed. It is omitted if nothing is subject to tax or if nothing is stated about the tax.
fn is_shown(tax: &Tax) -> bool {
    let TaxTreatment { rate, basis } = &tax.treatment;
    *rate != Percentage::ZERO || basis.category.is_some_and(|category| category != TaxCategory::O)
}

/// Returns the exemption reason as text, or else its code.
fn reason_of(basis: &TaxBasis) -> Option<&str> {
    let code = basis.exemption_code.as_ref().map(|code| code.as_str());
    basis.exemption_reason.as_ref().map(|reason| reason.as_str()).or(code)
}

/// Returns an address from its first line to its country in postal order. The postal code precedes the city, but
/// follows it if a state is given.
fn address_lines(address: &Address) -> Vec<Text> {
    let Address { line1, line2, city, state, zip_code, country, country_code } = address;
    let text = |part: &Option<billing_domain::text::Prose>| part.as_ref().map(|part| part.as_str().trim().to_owned());
    let place = match (text(zip_code), text(city), text(state)) {
        (zip_code, city, None) => [zip_code, city].into_iter().flatten().collect::<Vec<_>>().join(" "),
        (zip_code, city, Some(state)) => {
            let state = [Some(state), zip_code].into_iter().flatten().collect::<Vec<_>>().join(" ");
            [city, Some(state)].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    };
    let country = text(country).or_else(|| country_code.map(|code| code.to_string()));
    let lines = [text(line1), text(line2), Some(place), country];
    lines.into_iter().flatten().flat_map(|line| Text::lines(&line).collect::<Vec<_>>()).collect()
}

/// Returns an IBAN in groups of four.
fn in_groups(iban: &str) -> String {
    let groups: Vec<&str> = iban.as_bytes().chunks(4).filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join("\u{a0}")
}

/// Shortens a name to the length of a line.
fn shortened(name: &str) -> String {
    if name.chars().count() <= FOOT_CHARS {
        return name.to_owned();
    }
    name.chars().take(FOOT_CHARS).chain(std::iter::once('…')).collect()
}
