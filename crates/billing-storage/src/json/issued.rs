//! The exact bytes of an issued document's content: fixed key order, exact numbers as text, no floats. The bytes are
//! hashed, so the output for issued documents must never change; a new shape gets a new format. Fields that older
//! documents lack are omitted when empty. Format 1 has no [`LegalParticulars`], format 2 has them. Format 3 also has the
//! calculation of each line and the amounts applied at the issue. In format 4, calculations distinguish amounts of issued
//! documents from other amounts. Each format is written as it was read.

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::catalog::Tier;
use billing_domain::codes::UnitCode;
use billing_domain::contract::terms::QuantityStep;
use billing_domain::decimal::WideDecimal;
use billing_domain::document::calculation::LineCalculation;
use billing_domain::document::legal_particulars::LegalParticulars;
use billing_domain::document::lines::{BillWith, DiscountAndTax, DocumentLine, LineCharge, LineUsage};
use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::prepaid::PrepaidAmount;
use billing_domain::document::totals::{BilledProduct, DocumentContent, Tax};
use billing_domain::document::{AtIssue, DocumentHead, DocumentKind, DraftContent, IssuedDocument, Parties, Purpose};
use billing_domain::money::{Currency, Money, Percentage, Price, SignedPrice};
use billing_domain::party::{NetTerms, NumberPrefix, PaymentDetails};
use billing_domain::quantity::Quantity;
use billing_domain::rating::RatedTier;
use billing_domain::refs::{
    ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, LineItemId, PricingRef, ProductNo, UsageProductRef,
};
use billing_domain::tax::{TaxBasis, TaxTreatment};
use billing_domain::text::{OneLine, Prose};
use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::calculation::{self, AtIssueMirror};
use super::paper::{self, TaxBasisMirror};
use super::party::PaymentMirror;
use super::pricing::TierMirror;
use super::terms::{QuantityStepMirror, period};
use super::{column, is_false, list_of, option_of};
use super::{prepaid, tax};
use crate::text_value;

/// An issued document to be written: its head and its content.
#[derive(Serialize)]
pub(crate) struct FrozenRef<'a> {
    format: u8,
    #[serde(with = "HeadMirror")]
    document: &'a DocumentHead,
    #[serde(with = "IssuedMirror")]
    issued: &'a IssuedDocument,
}

impl<'a> FrozenRef<'a> {
    pub(crate) const fn new(document: &'a DocumentHead, issued: &'a IssuedDocument) -> Self {
        Self { format: issued.format, document, issued }
    }
}

/// An issued document that was read.
#[derive(Deserialize)]
#[serde(from = "FrozenMirror")]
pub(crate) struct Frozen {
    pub(crate) document: DocumentHead,
    pub(crate) issued: IssuedDocument,
}

#[derive(Deserialize)]
struct FrozenMirror {
    format: u8,
    #[serde(with = "HeadMirror")]
    document: DocumentHead,
    #[serde(with = "IssuedMirror")]
    issued: IssuedDocument,
}

impl From<FrozenMirror> for Frozen {
    fn from(FrozenMirror { format, document, issued }: FrozenMirror) -> Self {
        Self { document, issued: IssuedDocument { format, ..issued } }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentHead")]
struct HeadMirror {
    #[serde(with = "text_value")]
    document_ref: DocumentRef,
    #[serde(with = "NumberMirror")]
    number: DocumentNumber,
    #[serde(with = "text_value")]
    kind: DocumentKind,
    #[serde(with = "PurposeMirror")]
    purpose: Purpose,
    #[serde(with = "text_value")]
    contract_ref: ContractRef,
    number_in_contract: u32,
    #[serde(with = "text_value")]
    customer_id: CustomerId,
    #[serde(with = "text_value")]
    entity_ref: EntityRef,
    #[serde(with = "text_value")]
    currency: Currency,
    #[serde(with = "period")]
    period: Period,
    is_partial_period: bool,
    #[serde(with = "parts")]
    parts: Vec<ProductNo>,
    #[serde(with = "text_value")]
    net_terms: NetTerms,
    #[serde(with = "PaymentMirror")]
    payment: PaymentDetails,
    #[serde(with = "text_value::option")]
    parent: Option<DocumentRef>,
    #[serde(with = "text_value::option")]
    replaces: Option<DocumentRef>,
    #[serde(with = "text_value")]
    created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentNumber")]
pub(super) struct NumberMirror {
    #[serde(with = "text_value")]
    prefix: NumberPrefix,
    #[serde(with = "text_value")]
    kind: DocumentKind,
    sequence: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Purpose", rename_all = "SCREAMING_SNAKE_CASE")]
enum PurposeMirror {
    Regular(#[serde(with = "text_value")] SlotKind),
    Usage,
    Adjustment,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ProductNo")]
struct ProductNoMirror(u16);

/// `{"product_no": 0}`. Older documents also have rates here, which their products repeat.
mod part {
    use billing_domain::refs::ProductNo;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::ProductNoMirror;

    #[derive(Serialize, Deserialize)]
    struct Part {
        #[serde(with = "ProductNoMirror")]
        product_no: ProductNo,
    }

    pub(super) fn serialize<S: Serializer>(product_no: &ProductNo, serializer: S) -> Result<S::Ok, S::Error> {
        Part { product_no: *product_no }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProductNo, D::Error> {
        Part::deserialize(deserializer).map(|part| part.product_no)
    }
}
list_of!(parts: ProductNo = "part");

#[derive(Serialize, Deserialize)]
#[serde(remote = "IssuedDocument")]
struct IssuedMirror {
    /// Written before the document.
    #[serde(skip)]
    format: u8,
    #[serde(with = "text_value")]
    issued_at: Timestamp,
    #[serde(with = "text_value")]
    issue_date: NaiveDate,
    #[serde(with = "text_value")]
    due_date: NaiveDate,
    #[serde(with = "PartiesMirror")]
    parties: Parties,
    #[serde(with = "text_value::option")]
    po_number: Option<OneLine>,
    #[serde(with = "text_value::option")]
    note: Option<Prose>,
    #[serde(with = "ContentMirror")]
    content: DocumentContent,
    #[serde(with = "paper::boxed", default, skip_serializing_if = "Option::is_none")]
    paper: Option<Box<LegalParticulars>>,
    #[serde(with = "at_issue", default, skip_serializing_if = "Option::is_none")]
    at_issue: Option<AtIssue>,
}
option_of!(at_issue: AtIssue = "AtIssueMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "DraftContent")]
struct DraftMirror {
    #[serde(with = "PartiesMirror")]
    parties: Parties,
    #[serde(with = "text_value::option")]
    po_number: Option<OneLine>,
    #[serde(with = "text_value::option")]
    note: Option<Prose>,
    #[serde(with = "ContentMirror")]
    content: DocumentContent,
    #[serde(with = "paper::boxed", default, skip_serializing_if = "Option::is_none")]
    paper: Option<Box<LegalParticulars>>,
}
column!(
    /// The content of a draft when it was voided.
    StoredDraftRef, StoredDraft: DraftContent = "DraftMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Parties")]
struct PartiesMirror {
    #[serde(with = "text_value")]
    customer_ref: CustomerRef,
    #[serde(with = "text_value")]
    customer_name: OneLine,
    #[serde(with = "text_value::option")]
    customer_legal_name: Option<OneLine>,
    #[serde(with = "text_value")]
    entity_ref: EntityRef,
    #[serde(with = "text_value")]
    entity_name: OneLine,
    #[serde(with = "text_value::option")]
    entity_legal_name: Option<OneLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentContent")]
struct ContentMirror {
    #[serde(with = "products")]
    products: Vec<BilledProduct>,
    #[serde(with = "taxes")]
    taxes: Vec<Tax>,
    #[serde(with = "text_value")]
    sub_total: Money,
    #[serde(with = "text_value")]
    total_discount: Money,
    #[serde(with = "prepaid_amounts", default, skip_serializing_if = "Vec::is_empty")]
    prepaid: Vec<PrepaidAmount>,
    #[serde(with = "text_value")]
    total_tax: Money,
    #[serde(with = "text_value")]
    total: Money,
}

/// A product's lines. Values that the domain groups are separate keys here, as in earlier documents.
#[derive(Serialize, Deserialize)]
struct StoredProduct {
    #[serde(with = "ProductNoMirror")]
    product_no: ProductNo,
    #[serde(with = "text_value")]
    pricing_ref: PricingRef,
    #[serde(with = "text_value")]
    name: OneLine,
    #[serde(default, skip_serializing_if = "is_false")]
    has_own_name: bool,
    #[serde(with = "text_value::option")]
    minimum_fee: Option<Price>,
    #[serde(with = "lines")]
    lines: Vec<DocumentLine>,
    #[serde(with = "text_value")]
    sub_total: Money,
    #[serde(with = "text_value")]
    discount_rate: Percentage,
    #[serde(with = "text_value")]
    discount: Money,
    #[serde(with = "text_value")]
    net: Money,
    #[serde(with = "text_value")]
    tax_rate: Percentage,
    #[serde(with = "TaxBasisMirror", default, skip_serializing_if = "paper::is_unstated")]
    treatment: TaxBasis,
}

mod product {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{BilledProduct, DiscountAndTax, StoredProduct, TaxTreatment};

    pub(super) fn serialize<S: Serializer>(product: &BilledProduct, serializer: S) -> Result<S::Ok, S::Error> {
        // The pattern names every field, so that a new field fails to compile.
        let BilledProduct { product_no, pricing_ref, name, has_own_name, minimum_fee, lines, sub_total, rates, discount, net } =
            product.clone();
        let DiscountAndTax { discount: discount_rate, tax: TaxTreatment { rate: tax_rate, basis: treatment } } = rates;
        let stored = StoredProduct {
            product_no,
            pricing_ref,
            name,
            has_own_name,
            minimum_fee,
            lines,
            sub_total,
            discount_rate,
            discount,
            net,
            tax_rate,
            treatment,
        };
        stored.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BilledProduct, D::Error> {
        let product = StoredProduct::deserialize(deserializer)?;
        let tax = TaxTreatment { rate: product.tax_rate, basis: product.treatment };
        Ok(BilledProduct {
            product_no: product.product_no,
            pricing_ref: product.pricing_ref,
            name: product.name,
            has_own_name: product.has_own_name,
            minimum_fee: product.minimum_fee,
            lines: product.lines,
            sub_total: product.sub_total,
            rates: DiscountAndTax { discount: product.discount_rate, tax },
            discount: product.discount,
            net: product.net,
        })
    }
}
list_of!(products: BilledProduct = "product");

/// A line. Fields that are optional only here are omitted when they follow from the others.
#[derive(Serialize, Deserialize)]
struct StoredLine {
    #[serde(with = "text_value::option")]
    line_item_id: Option<LineItemId>,
    #[serde(with = "text_value")]
    name: OneLine,
    /// Present unless it is the first day of the displayed period.
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    period_start: Option<NaiveDate>,
    #[serde(with = "period")]
    service_period: Period,
    /// Present unless it equals [`usual_bill_with`].
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    bill_with: Option<BillWith>,
    #[serde(with = "line_usage")]
    usage: Option<LineUsage>,
    #[serde(with = "quantities", default, skip_serializing_if = "Vec::is_empty")]
    quantities: Vec<QuantityStep>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    unit_code: Option<UnitCode>,
    #[serde(with = "line_charge", default, skip_serializing_if = "Option::is_none")]
    charge: Option<LineCharge>,
    #[serde(default, skip_serializing_if = "is_false")]
    has_default_tax: bool,
    #[serde(with = "text_value")]
    amount: Money,
    /// Present since format 3.
    #[serde(with = "calculation::boxed", default, skip_serializing_if = "Option::is_none")]
    calculation: Option<Box<LineCalculation>>,
}
list_of!(quantities: QuantityStep = "QuantityStepMirror");

/// Returns the billing that a line implies: fixed for a line item without usage, and by usage for all others. A line of
/// prepaid usage states explicitly that it is billed like a fixed one.
const fn usual_bill_with(line_item_id: Option<&LineItemId>, usage: Option<&LineUsage>) -> BillWith {
    match (line_item_id, usage) {
        (Some(_), None) => BillWith::Fixed,
        (Some(_), Some(_)) | (None, _) => BillWith::Usage,
    }
}

mod line {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{DocumentLine, StoredLine, usual_bill_with};

    pub(super) fn serialize<S: Serializer>(line: &DocumentLine, serializer: S) -> Result<S::Ok, S::Error> {
        let usual = usual_bill_with(line.line_item_id.as_ref(), line.usage.as_ref());
        // The pattern names every field, so that a new field fails to compile.
        let DocumentLine {
            line_item_id,
            name,
            period_start,
            service_period,
            bill_with,
            usage,
            quantities,
            unit_code,
            charge,
            has_default_tax,
            amount,
            calculation,
        } = line.clone();
        let period_start = (period_start != service_period.start()).then_some(period_start);
        let bill_with = (bill_with != usual).then_some(bill_with);
        let stored = StoredLine {
            line_item_id,
            name,
            period_start,
            service_period,
            bill_with,
            usage,
            quantities,
            unit_code,
            charge,
            has_default_tax,
            amount,
            calculation,
        };
        stored.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DocumentLine, D::Error> {
        let line = StoredLine::deserialize(deserializer)?;
        let usual = usual_bill_with(line.line_item_id.as_ref(), line.usage.as_ref());
        Ok(DocumentLine {
            line_item_id: line.line_item_id,
            name: line.name,
            period_start: line.period_start.unwrap_or(line.service_period.start()),
            service_period: line.service_period,
            bill_with: line.bill_with.unwrap_or(usual),
            usage: line.usage,
            quantities: line.quantities,
            unit_code: line.unit_code,
            charge: line.charge,
            has_default_tax: line.has_default_tax,
            amount: line.amount,
            calculation: line.calculation,
        })
    }
}
list_of!(lines: DocumentLine = "line");

#[derive(Serialize, Deserialize)]
#[serde(remote = "LineUsage")]
struct LineUsageMirror {
    #[serde(with = "text_value")]
    usage_product_ref: UsageProductRef,
    #[serde(with = "text_value")]
    quantity: Decimal,
    #[serde(with = "text_value::option")]
    unit: Option<OneLine>,
    #[serde(with = "text_value::option")]
    unit_price: Option<Price>,
    #[serde(with = "rated_tiers")]
    tiers: Vec<RatedTier>,
}
option_of!(line_usage: LineUsage = "LineUsageMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "LineCharge")]
struct LineChargeMirror {
    #[serde(with = "text_value")]
    date: NaiveDate,
    #[serde(with = "text_value")]
    quantity: Quantity,
    #[serde(with = "text_value::option")]
    unit: Option<OneLine>,
    #[serde(with = "text_value")]
    unit_price: SignedPrice,
}
option_of!(line_charge: LineCharge = "LineChargeMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "RatedTier")]
struct RatedTierMirror {
    #[serde(with = "TierMirror")]
    tier: Tier,
    #[serde(with = "text_value")]
    quantity: WideDecimal,
    #[serde(with = "text_value")]
    amount: WideDecimal,
}
list_of!(rated_tiers: RatedTier = "RatedTierMirror");

list_of!(taxes: Tax = "tax");
list_of!(prepaid_amounts: PrepaidAmount = "prepaid");

#[cfg(test)]
mod tests {
    use billing_domain::document::calculation::{
        CalculatedTier, ExcludedAmount, MinimumFeeCalculation, PackageCalculation, PercentageCalculation, PreviouslyBilled,
        Proration, QuantityShare, UnissuedAmount,
    };
    use billing_domain::document::{AppliedAtIssue, CONTENT_FORMAT};
    use billing_testkit::{FreshIds, fixtures};
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// The first document of a chain, issued by a release before format 2.
    const FORMAT_1: &str = include_str!("../../tests/storage/issued_format_1.json");
    /// A document issued by a release before format 3.
    const FORMAT_2: &str = include_str!("../../tests/storage/issued_format_2.json");
    /// A document issued by a release before format 4.
    const FORMAT_3: &str = include_str!("../../tests/storage/issued_format_3.json");
    const FORMAT_1_HASH: &str = "d89f76edcdcd0147890d959f986d913de13593fc07e44a361c8bf913f526d6bb";

    #[test]
    fn format_1_is_read_as_it_was_written_and_written_as_it_was_read() {
        let frozen: Frozen = serde_json::from_str(FORMAT_1).expect("a document of format 1");
        let issued = &frozen.issued;
        assert_eq!((issued.paper.as_deref(), issued.content.total.to_string().as_str()), (None, "85.68 EUR"));
        assert_eq!(issued.parties.customer_legal_name.as_ref().map(OneLine::as_str), Some("Ünïcode GmbH"));
        let product = &issued.content.products[0];
        let basis = TaxBasis::default();
        assert_eq!((&product.rates.tax.basis, &issued.content.taxes[0].treatment.basis), (&basis, &basis));
        let of_ledger = issued.content.ledger_lines();
        assert!(of_ledger.iter().all(|line| line.rates.tax == TaxTreatment::at(product.rates.tax.rate)));
        assert!(product.lines.iter().all(|line| line.unit_code.is_none()));
        assert!(issued.content.adds_up());

        let written = serde_json::to_string(&FrozenRef::new(&frozen.document, issued)).expect("JSON");
        assert_eq!(written, FORMAT_1);
        let hash = Sha256::new().chain_update([0; 32]).chain_update(&written).finalize();
        assert_eq!(hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), FORMAT_1_HASH);
    }

    #[test]
    fn format_2_is_read_as_it_was_written_and_written_as_it_was_read() {
        let Frozen { document, issued } = serde_json::from_str(FORMAT_2).expect("a document of format 2");
        assert_eq!((issued.paper.is_some(), &issued.at_issue), (true, &None));
        let lines = || issued.content.products.iter().flat_map(|product| &product.lines);
        assert!(lines().all(|line| line.calculation.is_none() && line.unit_code.is_some()));
        assert!(issued.content.adds_up());
        assert_eq!(serde_json::to_string(&FrozenRef::new(&document, &issued)).expect("JSON"), FORMAT_2);
    }

    #[test]
    fn format_3_is_read_as_it_was_written_and_printed_with_its_calculations() {
        let Frozen { document, issued } = serde_json::from_str(FORMAT_3).expect("a document of format 3");
        assert!(issued.content.adds_up());
        assert_eq!(serde_json::to_string(&FrozenRef::new(&document, &issued)).expect("JSON"), FORMAT_3);
        let steps_of = |line: &DocumentLine| -> Vec<String> {
            let calculation = line.calculation.as_ref().expect("a calculation");
            calculation.steps(line.amount.currency()).iter().map(|step| step.in_english("GB")).collect()
        };
        let steps: Vec<Vec<String>> = issued.content.products[0].lines.iter().map(steps_of).collect();
        assert_eq!(
            steps,
            [
                &[
                    "2 × 19.60, 2026-09-01 to 2026-09-15, 15 of 30 days: 19.60",
                    "3 × 19.60, 2026-09-16 to 2026-09-30, 15 of 30 days: 29.40",
                ][..],
                &["100 × 0.10 = 10", "150.5 × 0.05 = 7.525", "now 17.53, billed on UB-INV-2, UB-CRD-1 5.00, difference 12.53"],
                &["1 GB × -10 = -10"],
                &["minimum fee 90 − 61.53 billed = 28.47"],
            ]
        );
    }

    #[test]
    fn what_is_issued_now_says_format_4_with_every_factor_of_its_lines() {
        let Frozen { document, mut issued } = serde_json::from_str(FORMAT_2).expect("a document of format 2");
        let decimal = |text: &str| Some(Decimal::from_str_exact(text).expect("a decimal"));
        let (price, quantity) = (fixtures::price, fixtures::quantity);
        let tier = CalculatedTier {
            from: Decimal::ZERO,
            up_to: decimal("100"),
            quantity: Decimal::ONE_HUNDRED.into(),
            unit_price: price("0.10"),
            flat_amount: price("0"),
            amount: Decimal::TEN.into(),
        };
        let packages = PackageCalculation { count: Decimal::TWO, size: quantity("1000"), price: price("35.00") };
        let share = |packages| QuantityShare {
            from: document.period.start(),
            to: document.period.last_day(),
            quantity: quantity("2"),
            days: 30,
            of_days: 30,
            tiers: vec![tier],
            packages,
            amount: fixtures::cents(4900),
        };
        let number = DocumentNumber { kind: DocumentKind::Credit, ..document.number.clone() };
        let every_factor = LineCalculation {
            usage_quantity: decimal("150.5"),
            included_quantity: decimal("10"),
            prepaid_quantity: decimal("100"),
            billable_quantity: decimal("140.5"),
            unit_price: SignedPrice::parse("-0.10").ok(),
            tiers: vec![tier, CalculatedTier { up_to: None, ..tier }],
            packages: Some(packages),
            percentage: Some(PercentageCalculation {
                rate: fixtures::percent("2.9"),
                base: Decimal::ONE,
                fixed_amount: price("0.30"),
                count: 12,
            }),
            quantities: vec![share(Some(packages)), share(None)],
            proration: Some(Proration { days: 24, of_days: 30 }),
            minimum: decimal("-60.00"),
            maximum: decimal("50"),
            minimum_fee: Some(MinimumFeeCalculation {
                fee: price("80"),
                billed: fixtures::cents(-1),
                excluded: vec![ExcludedAmount { name: fixtures::line("Set-up"), amount: fixtures::cents(25_000) }],
            }),
            previously: Some(PreviouslyBilled {
                quantity: decimal("100"),
                amount: fixtures::cents(1000),
                documents: vec![document.number.clone(), number.clone()],
            }),
            unissued: Some(UnissuedAmount { amount: fixtures::cents(-4000), documents: Vec::new() }),
        };
        issued.content.products[0].lines[0].calculation = Some(Box::new(every_factor));
        issued.content.products[0].lines[1].calculation = Some(Box::default());
        let applied = |document_number, minor| AppliedAtIssue { document_number, amount: fixtures::cents(minor) };
        let applied = vec![applied(Some(number), 568), applied(None, 1000)];
        issued.format = CONTENT_FORMAT;
        issued.at_issue = Some(AtIssue::new(issued.content.total, applied).expect("a small amount"));
        let written = serde_json::to_string(&FrozenRef::new(&document, &issued)).expect("JSON");
        let end = r#","at_issue":{"applied":[{"document_number":"UB-CRD-1","amount":"5.68 EUR"},{"amount":"10.00 EUR"}],"due":"70.00 EUR"}}}"#;
        assert!(written.starts_with(r#"{"format":4,"#) && written.ends_with(end), "{written}");
        assert!(written.contains(r#""calculation":{"usage_quantity":"150.5","included_quantity":"10","#), "{written}");
        assert!(written.contains(r#""excluded":[{"name":"Set-up","amount":"250.00 EUR"}]"#), "{written}");
        assert!(written.contains(r#""unissued":{"amount":"-40.00 EUR"}"#), "{written}");
        assert!(written.contains(r#""calculation":{}"#), "{written}");
        let read: Frozen = serde_json::from_str(&written).expect("a document of format 4");
        assert_eq!((read.document, read.issued), (document, issued));
    }

    #[test]
    fn what_has_a_paper_says_format_2_and_all_that_format_1_said() {
        let Frozen { document, mut issued } = serde_json::from_str(FORMAT_1).expect("a document of format 1");
        let (customer, entity) = (fixtures::customer(&FreshIds, "c"), fixtures::entity("e"));
        (issued.paper, issued.format) = (fixtures::paper(&customer, &entity), 2);
        let written = serde_json::to_string(&FrozenRef::new(&document, &issued)).expect("JSON");
        let (one, two) = (FORMAT_1.trim_end_matches("}}"), written.replace(r#"{"format":2,"#, r#"{"format":1,"#));
        assert!(two.starts_with(one) && two.contains(r#","paper":{"customer":{},"#), "{two}");
        let read: Frozen = serde_json::from_str(&written).expect("a document of format 2");
        assert_eq!((read.document, read.issued), (document, issued));
    }
}
