//! The data of a document's template: texts in the document's language, by position. This module determines the content
//! of a document, the template its layout.

mod sums;

use billing_domain::calendar::Period;
use billing_domain::codes::CountryCode;
use billing_domain::decimal::WideDecimal;
use billing_domain::document::calculation::{CalculationStep, LineCalculation};
use billing_domain::document::legal_particulars::{CorrectedDocument, LegalParticulars, PartyDetails, SupplyCategory};
use billing_domain::document::lines::DocumentLine;
use billing_domain::document::printout::Printout;
use billing_domain::document::totals::{BilledProduct, DocumentContent, Tax};
use billing_domain::document::{DocumentKind, Purpose};
use billing_domain::money::{Currency, Money, MoneyError, Percentage};
use billing_domain::party::bank::BankAccountProfile;
use billing_domain::party::legal::{Language, PaperSize, tax_label};
use billing_domain::ports::PrintError;
use billing_domain::rating::RatedTier;
use billing_domain::tax::{TaxBasis, TaxCategory};
use rust_decimal::Decimal;
use serde::Serialize;

use crate::calculation::{CalculationRenderer, Detail};
use crate::epc;
use crate::figures::Figures;
use crate::texts::{Entry, Footer, Text, address_lines, font_families, shortened};
use crate::translations::{Translations, with};

/// The maximum number of lines that are printed individually.
pub(crate) const MOST_LINES: usize = 500;

type PrintResult<T> = Result<T, PrintError>;
/// A line's quantity, its price of one unit, and the rows of its calculation.
type Columns = (Option<String>, Option<String>, Vec<Detail>);

/// The data of the template.
#[derive(Debug, Serialize)]
pub(crate) struct TemplateData {
    language: &'static str,
    paper: &'static str,
    /// The title in the file's metadata.
    title: String,
    heading: &'static str,
    number: String,
    /// The font families, in the order of their use.
    fonts: [&'static str; 2],
    /// The color of the title and the rules.
    accent: Option<String>,
    /// The file name of the logo.
    logo: Option<&'static str>,
    /// The word of the watermark on each page.
    #[serde(skip)]
    pub(crate) draft: Option<&'static str>,
    /// The place of the outlines of the watermark, which the typesetter adds.
    stamp: (),
    letterhead: Text,
    seller: Party,
    customer: Party,
    facts: Vec<Entry>,
    columns: [String; 4],
    products: Vec<Product>,
    sums: Vec<Entry>,
    /// The last entry of the totals.
    total: Entry,
    /// What follows the total: what a credit was applied to, and what is left of it.
    rest: Vec<Entry>,
    /// The reasons for tax exemptions.
    reasons: Vec<Text>,
    payment: Option<Block>,
    /// The QR code of the bank transfer.
    code: Option<Code>,
    notes: Option<Notes>,
    footer: Option<Footer>,
    foot: String,
    page: [&'static str; 2],
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
    /// The billed days, if they are others than those of the document.
    period: Option<String>,
    quantity: Option<String>,
    price: Option<String>,
    amount: String,
    /// The calculation of the amount.
    details: Vec<Detail>,
}

/// A QR code with its caption and its description for screen readers.
#[derive(Debug, Serialize)]
struct Code {
    svg: String,
    caption: &'static str,
    description: &'static str,
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

/// The builder of a document's template data.
struct Writer<'p> {
    printout: &'p Printout,
    paper: Option<&'p LegalParticulars>,
    language: Language,
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
        let paper = printout.draft_content.paper.as_deref();
        let language = paper.map(|paper| paper.language).unwrap_or_default();
        let size = paper.map_or(PaperSize::A4, |paper| paper.size);
        let label = paper.map_or_else(|| tax_label(None, language), |paper| paper.tax_label.clone());
        let writer = Writer {
            printout,
            paper,
            language,
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
        let (words, draft_content, kind) = (self.words, &self.printout.draft_content, self.printout.head.kind);
        let (parties, content) = (&draft_content.parties, &draft_content.content);
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
            fonts: font_families(self.language, self.country_of_customer()),
            accent: self.paper.and_then(|paper| paper.accent_color).map(|color| color.to_string()),
            logo: self.logo(),
            draft: self.printout.issued.is_none().then_some(words.draft),
            stamp: (),
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
            rest: self.rest()?,
            reasons: self.reasons(content),
            payment: self.payment(content, &number),
            code: self.code(content, seller_name, &number),
            notes: self.notes(),
            footer: self.paper.and_then(|paper| paper.footer.as_ref()).map(|footer| Footer::of(footer.as_str())),
            foot: format!("{} · {heading} {number}", shortened(seller_name)),
            page: words.page,
            number,
        })
    }

    /// Returns the file name of the logo, if its image is there.
    fn logo(&self) -> Option<&'static str> {
        let logo = self.paper.and_then(|paper| paper.logo.as_ref());
        logo.filter(|logo| logo.image.is_some()).map(|logo| logo.format.file_name())
    }

    fn country_of_customer(&self) -> Option<&'static str> {
        let address = self.paper.and_then(|paper| paper.customer.address.as_ref());
        address.and_then(|address| address.country_code).map(CountryCode::as_str)
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
        let lines = address.map(|address| address_lines(address, self.language)).unwrap_or_default();
        Party { label, name: Text::new(name), lines, numbers }
    }

    /// Returns the seller's contact for payers.
    fn contact(&self) -> Vec<Entry> {
        let Some(contact) = self.paper.and_then(|paper| paper.contact.as_ref()) else { return Vec::new() };
        let known = [&contact.name, &contact.phone, &contact.email].into_iter().flatten();
        // Only the first entry has a label, because the others are self-explanatory.
        known.zip([self.words.contact, "", ""]).map(|(known, label)| Entry::new(label, known.as_str())).collect()
    }

    fn facts(&self) -> PrintResult<Vec<Entry>> {
        let (words, head, draft_content) = (self.words, &self.printout.head, &self.printout.draft_content);
        let mut facts = vec![Entry::narrow(words.number, &head.number.to_string())];
        if let Some(issued) = self.printout.issued {
            facts.push(Entry::narrow(words.issue_date, &self.figures.date(issued.issue_date)?));
            if let Some(due_date) = issued.due_date {
                facts.push(Entry::narrow(words.due_date, &self.figures.date(due_date)?));
            }
        }
        facts.push(Entry::narrow(words.service_period, &self.figures.period(head.period)?));
        if let Some(supply) = self.paper.and_then(|paper| paper.supply) {
            let [services, goods, both] = words.id_generator;
            let shown = match supply {
                SupplyCategory::Services => services,
                SupplyCategory::Goods => goods,
                SupplyCategory::Mixed => both,
            };
            facts.push(Entry::narrow(words.supply, shown));
        }
        if let Some(corrected) = self.paper.and_then(|paper| paper.corrects.as_ref()) {
            let mut shown = self.corrected(corrected)?;
            if let Some(last) = self.paper.and_then(|paper| paper.corrects_last.as_ref()) {
                shown = format!("{shown} – {}", self.corrected(last)?);
            }
            facts.push(Entry::narrow(words.corrects, &shown));
        }
        facts.extend(draft_content.po_number.as_ref().map(|number| Entry::narrow(words.po_number, number.as_str())));
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
            Ok(Product { name: Text::new(&content.heading(product)), tax, lines, sums })
        };
        content.products.iter().map(product).collect()
    }

    /// Returns one line that replaces all lines of a product.
    fn all_lines(&self, product: &BilledProduct) -> PrintResult<Option<Line>> {
        let Some(first) = product.lines.iter().map(|line| line.service_period.start()).min() else { return Ok(None) };
        let last = product.lines.iter().map(|line| line.service_period.last_day()).max().unwrap_or(first);
        let count = self.figures.number(Decimal::from(product.lines.len()))?;
        Ok(Some(Line {
            name: Text(with(self.words.lines, &count)),
            period: match Period::inclusive(first, last) {
                Some(period) => self.period(period)?,
                None => None,
            },
            quantity: None,
            price: None,
            amount: self.figures.amount(product.sub_total)?,
            details: Vec::new(),
        }))
    }

    fn line(&self, line: &DocumentLine) -> PrintResult<Line> {
        let (quantity, price, details) = match &line.calculation {
            Some(calculation) => self.calculated(line, calculation)?,
            None => self.uncalculated(line)?,
        };
        let name = if line.line_item_id.is_none() { self.words.minimum_fee } else { line.name.as_str() };
        let period = match &line.charge {
            Some(charge) => Some(self.figures.date(charge.date)?),
            None => self.period(line.service_period)?,
        };
        Ok(Line { name: Text::new(name), period, quantity, price, amount: self.figures.amount(line.amount)?, details })
    }

    /// Formats the days of a line, unless they are those of the document.
    fn period(&self, period: Period) -> PrintResult<Option<String>> {
        if period == self.printout.head.period { Ok(None) } else { self.figures.period(period).map(Some) }
    }

    /// Returns the name of one unit of a line: the word for its unit code in the document's language, or else its own name.
    fn unit<'l>(&self, line: &'l DocumentLine) -> Option<&'l str> {
        let of_usage = line.usage.as_ref().and_then(|usage| usage.unit.as_ref());
        let own = of_usage.or_else(|| line.charge.as_ref().and_then(|charge| charge.unit.as_ref()));
        let has_unit = line.usage.is_some() || line.charge.is_some();
        let named = line.unit_code.filter(|_| has_unit).and_then(|code| self.words.units.named(code));
        named.or_else(|| own.map(|unit| unit.as_str()))
    }

    const fn calculations(&self) -> CalculationRenderer<'_> {
        CalculationRenderer { language: self.language, words: self.words, figures: &self.figures, currency: self.currency }
    }

    /// Returns the quantity, the price of one unit and the rows of a line's calculation. If the product of quantity and price is
    /// the whole calculation, it has no rows.
    fn calculated(&self, line: &DocumentLine, calculation: &LineCalculation) -> PrintResult<Columns> {
        let (unit, steps) = (self.unit(line), calculation.steps(self.currency));
        let counted = |quantity| self.calculations().counted(quantity, unit);
        if let [CalculationStep::UnitPrice { quantity, unit_price, .. }] = steps.as_slice() {
            let price = self.figures.price(*unit_price, self.currency)?;
            return Ok((Some(counted(*quantity)?), Some(price), Vec::new()));
        }
        let quantity = calculation.usage_quantity.or(calculation.billable_quantity).map(counted).transpose()?;
        Ok((quantity, None, self.calculations().rows(&steps, unit)?))
    }

    /// Returns the quantity, the price of one unit and the details of a line of format 1 or 2.
    fn uncalculated(&self, line: &DocumentLine) -> PrintResult<Columns> {
        let figures = &self.figures;
        let counted = |quantity: Decimal, unit: Option<&str>| self.calculations().counted(quantity, unit);
        let mut details = Vec::new();
        let (quantity, price) = match (&line.usage, &line.charge, line.quantities.as_slice()) {
            (Some(usage), _, _) => {
                for tier in &usage.tiers {
                    details.push(self.tier(tier)?);
                }
                let price = usage.unit_price.map(|price| figures.price(price.as_decimal(), self.currency)).transpose()?;
                (Some(counted(usage.quantity, self.unit(line))?), price)
            }
            (None, Some(charge), _) => {
                let price = figures.price(charge.unit_price.as_decimal(), self.currency)?;
                (Some(counted(charge.quantity.as_decimal(), self.unit(line))?), Some(price))
            }
            // A part of a price is not one unit, because another document has the rest.
            (None, None, []) if line.line_item_id.is_none() || !self.is_regular() => (None, None),
            (None, None, []) => (Some(figures.number(Decimal::ONE)?), None),
            (None, None, [step]) => (Some(counted(step.quantity.as_decimal(), None)?), None),
            (None, None, steps) => {
                for step in steps {
                    let since = with(self.words.from, &figures.date(step.from)?);
                    let what = format!("{} {since}", counted(step.quantity.as_decimal(), None)?);
                    details.push(Detail { what, amount: None });
                }
                (None, None)
            }
        };
        Ok((quantity, price, details))
    }

    fn is_regular(&self) -> bool {
        matches!(self.printout.head.purpose, Purpose::Regular(_)) && self.printout.head.kind == DocumentKind::Invoice
    }

    fn tier(&self, rated: &RatedTier) -> PrintResult<Detail> {
        let price = |price: WideDecimal| self.figures.price(price, self.currency);
        let quantity = self.figures.number(rated.quantity)?;
        let mut what = format!("{quantity} × {}", price(rated.tier.unit_price.as_decimal().into())?);
        let flat = rated.tier.flat_amount.as_decimal();
        if !flat.is_zero() {
            what = format!("{what} + {}", price(flat.into())?);
        }
        Ok(Detail { what, amount: Some(price(rated.amount)?) })
    }

    /// Returns the distinct reasons for tax exemptions. Reverse charge is named once, in the document's language.
    fn reasons(&self, content: &DocumentContent) -> Vec<Text> {
        let mut reasons: Vec<String> = Vec::new();
        for Tax { treatment, .. } in &content.taxes {
            let reason = if treatment.basis.category == Some(TaxCategory::Ae) {
                Some(self.reverse_charge(treatment.basis.exemption_reason.as_ref().map(|reason| reason.as_str())))
            } else {
                reason_of(&treatment.basis).map(str::to_owned)
            };
            if let Some(reason) = reason.filter(|reason| !reasons.iter().any(|known| known.eq_ignore_ascii_case(reason))) {
                reasons.push(reason);
            }
        }
        reasons.iter().map(|reason| Text::new(reason)).collect()
    }

    /// Returns the words for reverse charge, with a reason that says more than the same words in any language.
    fn reverse_charge(&self, reason: Option<&str>) -> String {
        let words = self.words.reverse_charge;
        match reason.map(str::trim).filter(|reason| !is_reverse_charge(reason)) {
            None => words.to_owned(),
            Some(reason) if reason.to_lowercase().contains(&words.to_lowercase()) => reason.to_owned(),
            Some(reason) => format!("{words} ({reason})"),
        }
    }

    /// Returns the account to pay to, if anything is due.
    fn account(&self, content: &DocumentContent) -> Option<&BankAccountProfile> {
        let is_owed = !self.is_credit() && self.due(content).minor() > 0;
        self.paper.and_then(|paper| paper.bank_account.as_ref()).filter(|_| is_owed)
    }

    /// Returns the QR code of the bank transfer. A draft has none, because its amount can change.
    fn code(&self, content: &DocumentContent, payee: &str, number: &str) -> Option<Code> {
        let account = self.account(content).filter(|_| self.printout.issued.is_some())?;
        let svg = epc::qr_code(self.printout.head.kind, self.due(content), account, payee, number)?;
        Some(Code { svg, caption: self.words.scan, description: self.words.qr_code })
    }

    fn payment(&self, content: &DocumentContent, number: &str) -> Option<Block> {
        let account = self.account(content)?;
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
        let notes = self.printout.draft_content.note.iter().map(|note| note.as_str()).chain(legal);
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

/// Returns whether a text has only the words for reverse charge, in any language.
fn is_reverse_charge(text: &str) -> bool {
    Language::ALL.iter().any(|language| is_like(Translations::of(*language).reverse_charge, text))
}

/// Returns whether two texts have the same letters, regardless of capitals, spaces and punctuation.
fn is_like(one: &str, other: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    letters(one) == letters(other)
}

fn unsummed(error: MoneyError) -> PrintError {
    PrintError::Failed(error.to_string())
}

/// Returns the exemption reason as text, or else its code.
fn reason_of(basis: &TaxBasis) -> Option<&str> {
    let code = basis.exemption_code.as_ref().map(|code| code.as_str());
    basis.exemption_reason.as_ref().map(|reason| reason.as_str()).or(code)
}

/// Returns an IBAN in groups of four.
fn in_groups(iban: &str) -> String {
    let groups: Vec<&str> = iban.as_bytes().chunks(4).filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join("\u{a0}")
}
