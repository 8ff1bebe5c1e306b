//! UBL 2.1, as `Invoice` or `CreditNote`.

use std::io;

use billing_domain::calendar::Period;
use billing_domain::einvoice::business_terms::{
    Allowance, BusinessTerms, InvoiceLine, Note, PRODUCT_NO, Party, PaymentInstructions, PostalAddress, Seller, TaxSubtotal,
    TypeCode,
};
use billing_domain::money::{Money, Percentage};
use billing_domain::party::legal::{Contact, EInvoiceProfile};
use billing_domain::refs::ProductNo;
use billing_domain::tax::TaxCategory;

use crate::xml::Xml;

const CAC: (&str, &str) = ("xmlns:cac", "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2");
const CBC: (&str, &str) = ("xmlns:cbc", "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2");
/// The length of a subject code between two number signs, which a note begins with (BT-21).
const SUBJECT_CHARS: usize = 3;

/// The names that differ between the two roots.
struct Names {
    root: &'static str,
    namespace: &'static str,
    type_code: &'static str,
    line: &'static str,
    quantity: &'static str,
}

const INVOICE: Names = Names {
    root: "Invoice",
    namespace: "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2",
    type_code: "cbc:InvoiceTypeCode",
    line: "cac:InvoiceLine",
    quantity: "cbc:InvoicedQuantity",
};
const CREDIT_NOTE: Names = Names {
    root: "CreditNote",
    namespace: "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2",
    type_code: "cbc:CreditNoteTypeCode",
    line: "cac:CreditNoteLine",
    quantity: "cbc:CreditedQuantity",
};

/// Writes an e-invoice.
pub(crate) fn write(terms: &BusinessTerms) -> io::Result<Vec<u8>> {
    let names = match terms.type_code {
        TypeCode::Invoice => &INVOICE,
        TypeCode::CreditNote => &CREDIT_NOTE,
    };
    Xml::document(names.root, &[("xmlns", names.namespace), CAC, CBC], |xml| {
        header(xml, terms, names)?;
        references(xml, terms)?;
        xml.element("cac:AccountingSupplierParty", |xml| seller(xml, &terms.seller))?;
        xml.element("cac:AccountingCustomerParty", |xml| party(xml, &terms.buyer, None, None))?;
        payment(xml, terms)?;
        for allowance in &terms.allowances {
            xml.element("cac:AllowanceCharge", |xml| write_allowance(xml, allowance))?;
        }
        taxes(xml, terms)?;
        xml.element("cac:LegalMonetaryTotal", |xml| totals(xml, terms))?;
        terms.lines.iter().try_for_each(|line| xml.element(names.line, |xml| write_line(xml, line, names)))
    })
}

fn header(xml: &mut Xml, terms: &BusinessTerms, names: &Names) -> io::Result<()> {
    xml.text("cbc:CustomizationID", &terms.specification())?;
    xml.optional("cbc:ProfileID", terms.process)?;
    xml.text("cbc:ID", &terms.number)?;
    xml.text("cbc:IssueDate", &terms.issue_date.to_string())?;
    // A credit note has no such element.
    if terms.type_code == TypeCode::Invoice {
        xml.optional("cbc:DueDate", terms.due_date.map(|date| date.to_string()).as_deref())?;
    }
    xml.text(names.type_code, terms.type_code.as_str())?;
    for note in notes(terms) {
        xml.text("cbc:Note", &note)?;
    }
    xml.text("cbc:DocumentCurrencyCode", terms.currency.code())?;
    xml.optional("cbc:TaxCurrencyCode", terms.tax_total_in_currency.map(|total| total.currency().code()))?;
    xml.optional("cbc:BuyerReference", terms.buyer_reference.as_deref())?;
    period(xml, terms.period)
}

/// Returns the notes. Peppol allows a single one (PEPPOL-EN16931-R002).
fn notes(terms: &BusinessTerms) -> Vec<String> {
    let texts: Vec<String> = terms.notes.iter().map(note).collect();
    match terms.profile {
        EInvoiceProfile::Peppol if !texts.is_empty() => vec![texts.join("\n")],
        _ => texts,
    }
}

/// Returns a note with its subject between number signs. A text that only looks like a subject is changed, because it would have
/// to be a code of the list (BR-CL-08).
fn note(Note { subject, text }: &Note) -> String {
    match subject {
        Some(subject) => format!("#{subject}#{text}"),
        None => {
            let between = text.split_once('#').and_then(|(_, rest)| rest.split_once('#')).map(|(between, _)| between);
            if between.is_some_and(|between| between.chars().count() == SUBJECT_CHARS) {
                text.replacen('#', "# ", 1)
            } else {
                text.clone()
            }
        }
    }
}

fn references(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    if let Some(number) = &terms.order_reference {
        xml.element("cac:OrderReference", |xml| xml.text("cbc:ID", number))?;
    }
    for preceding in &terms.preceding {
        xml.element("cac:BillingReference", |xml| {
            xml.element("cac:InvoiceDocumentReference", |xml| {
                xml.text("cbc:ID", &preceding.number)?;
                xml.text("cbc:IssueDate", &preceding.issue_date.to_string())
            })
        })?;
    }
    Ok(())
}

fn period(xml: &mut Xml, period: Period) -> io::Result<()> {
    xml.element("cac:InvoicePeriod", |xml| {
        xml.text("cbc:StartDate", &period.start().to_string())?;
        xml.text("cbc:EndDate", &period.last_day().to_string())
    })
}

fn seller(xml: &mut Xml, seller: &Seller) -> io::Result<()> {
    party(xml, &seller.party, seller.tax_registration.as_deref(), seller.contact.as_ref())
}

fn party(xml: &mut Xml, party: &Party, tax_registration: Option<&str>, contact: Option<&Contact>) -> io::Result<()> {
    xml.element("cac:Party", |xml| {
        if let Some(address) = &party.electronic_address {
            xml.text_with("cbc:EndpointID", &[("schemeID", address.scheme.as_str())], address.value.as_str())?;
        }
        if let Some(name) = &party.trading_name {
            xml.element("cac:PartyName", |xml| xml.text("cbc:Name", name))?;
        }
        xml.element("cac:PostalAddress", |xml| address(xml, &party.address))?;
        for (id, scheme) in [(party.vat_id.as_deref(), "VAT"), (tax_registration, "TAX")] {
            let Some(id) = id else { continue };
            xml.element("cac:PartyTaxScheme", |xml| {
                xml.text("cbc:CompanyID", id)?;
                xml.element("cac:TaxScheme", |xml| xml.text("cbc:ID", scheme))
            })?;
        }
        xml.element("cac:PartyLegalEntity", |xml| {
            xml.text("cbc:RegistrationName", &party.name)?;
            match &party.registration {
                Some(registration) => match registration.scheme {
                    Some(scheme) => xml.text_with("cbc:CompanyID", &[("schemeID", scheme.as_str())], &registration.value),
                    None => xml.text("cbc:CompanyID", &registration.value),
                },
                None => Ok(()),
            }
        })?;
        match contact.filter(|contact| **contact != Contact::default()) {
            Some(contact) => xml.element("cac:Contact", |xml| {
                xml.optional("cbc:Name", contact.name.as_ref().map(|name| name.as_str()))?;
                xml.optional("cbc:Telephone", contact.phone.as_ref().map(|phone| phone.as_str()))?;
                xml.optional("cbc:ElectronicMail", contact.email.as_ref().map(|email| email.as_str()))
            }),
            None => Ok(()),
        }
    })
}

fn address(xml: &mut Xml, address: &PostalAddress) -> io::Result<()> {
    xml.optional("cbc:StreetName", address.line1.as_deref())?;
    xml.optional("cbc:AdditionalStreetName", address.line2.as_deref())?;
    xml.optional("cbc:CityName", address.city.as_deref())?;
    xml.optional("cbc:PostalZone", address.post_code.as_deref())?;
    xml.optional("cbc:CountrySubentity", address.subdivision.as_deref())?;
    match address.country {
        Some(country) => xml.element("cac:Country", |xml| xml.text("cbc:IdentificationCode", country.as_str())),
        None => Ok(()),
    }
}

fn payment(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    let PaymentInstructions { code, reference, account } = &terms.payment;
    xml.element("cac:PaymentMeans", |xml| {
        xml.text("cbc:PaymentMeansCode", code)?;
        xml.text("cbc:PaymentID", reference)?;
        let Some(account) = account else { return Ok(()) };
        xml.element("cac:PayeeFinancialAccount", |xml| {
            xml.text("cbc:ID", &account.number)?;
            xml.optional("cbc:Name", account.name.as_deref())?;
            match &account.bic {
                Some(bic) => xml.element("cac:FinancialInstitutionBranch", |xml| xml.text("cbc:ID", bic)),
                None => Ok(()),
            }
        })
    })?;
    match &terms.payment_terms {
        Some(note) => xml.element("cac:PaymentTerms", |xml| xml.text("cbc:Note", note)),
        None => Ok(()),
    }
}

fn write_allowance(xml: &mut Xml, allowance: &Allowance) -> io::Result<()> {
    xml.text("cbc:ChargeIndicator", "false")?;
    xml.optional("cbc:AllowanceChargeReasonCode", allowance.reason_code)?;
    xml.optional("cbc:AllowanceChargeReason", allowance.reason.as_deref())?;
    if let Some((_, percentage)) = allowance.percentage {
        xml.text("cbc:MultiplierFactorNumeric", &percent(percentage))?;
    }
    amount(xml, "cbc:Amount", allowance.amount)?;
    if let Some((base, _)) = allowance.percentage {
        amount(xml, "cbc:BaseAmount", base)?;
    }
    let rate = Some(allowance.rate).filter(|_| allowance.category != TaxCategory::O);
    category(xml, "cac:TaxCategory", allowance.category, rate, None)
}

fn taxes(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    xml.element("cac:TaxTotal", |xml| {
        amount(xml, "cbc:TaxAmount", terms.totals.tax)?;
        terms.taxes.iter().try_for_each(|tax| {
            xml.element("cac:TaxSubtotal", |xml| {
                amount(xml, "cbc:TaxableAmount", tax.base)?;
                amount(xml, "cbc:TaxAmount", tax.tax)?;
                category(xml, "cac:TaxCategory", tax.category, tax.rate, Some(tax))
            })
        })
    })?;
    match terms.tax_total_in_currency {
        Some(total) => xml.element("cac:TaxTotal", |xml| amount(xml, "cbc:TaxAmount", total)),
        None => Ok(()),
    }
}

/// Writes a tax category with its rate, and with the reason of an exemption.
fn category(
    xml: &mut Xml,
    name: &str,
    category: TaxCategory,
    rate: Option<Percentage>,
    reasons: Option<&TaxSubtotal>,
) -> io::Result<()> {
    xml.element(name, |xml| {
        xml.text("cbc:ID", category.as_str())?;
        xml.optional("cbc:Percent", rate.map(percent).as_deref())?;
        if let Some(reasons) = reasons {
            xml.optional("cbc:TaxExemptionReasonCode", reasons.exemption_code.map(|code| code.as_str()))?;
            xml.optional("cbc:TaxExemptionReason", reasons.exemption_reason.as_deref())?;
        }
        xml.element("cac:TaxScheme", |xml| xml.text("cbc:ID", "VAT"))
    })
}

fn totals(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    let totals = &terms.totals;
    amount(xml, "cbc:LineExtensionAmount", totals.lines)?;
    amount(xml, "cbc:TaxExclusiveAmount", totals.net)?;
    amount(xml, "cbc:TaxInclusiveAmount", totals.total)?;
    // Present exactly if there are allowances (BR-CO-11).
    if !terms.allowances.is_empty() {
        amount(xml, "cbc:AllowanceTotalAmount", totals.allowances)?;
    }
    if totals.paid.minor() != 0 {
        amount(xml, "cbc:PrepaidAmount", totals.paid)?;
    }
    amount(xml, "cbc:PayableAmount", totals.due)
}

fn write_line(xml: &mut Xml, line: &InvoiceLine, names: &Names) -> io::Result<()> {
    xml.text("cbc:ID", &line.number.to_string())?;
    let quantity = line.quantity.normalize().to_string();
    xml.text_with(names.quantity, &[("unitCode", line.unit_code.as_str())], &quantity)?;
    amount(xml, "cbc:LineExtensionAmount", line.amount)?;
    period(xml, line.period)?;
    xml.element("cac:Item", |xml| {
        xml.optional("cbc:Description", line.description.as_deref())?;
        xml.text("cbc:Name", &line.name)?;
        if let Some(id) = &line.item_id {
            xml.element("cac:SellersItemIdentification", |xml| xml.text("cbc:ID", id))?;
        }
        let rate = Some(line.rate).filter(|_| line.category != TaxCategory::O);
        category(xml, "cac:ClassifiedTaxCategory", line.category, rate, None)?;
        let Some(ProductNo(number)) = line.product_no else { return Ok(()) };
        xml.element("cac:AdditionalItemProperty", |xml| {
            xml.text("cbc:Name", PRODUCT_NO)?;
            xml.text("cbc:Value", &number.to_string())
        })
    })?;
    xml.element("cac:Price", |xml| {
        let currency = line.amount.currency().code();
        xml.text_with("cbc:PriceAmount", &[("currencyID", currency)], &line.unit_price.to_string())
    })
}

fn amount(xml: &mut Xml, name: &str, amount: Money) -> io::Result<()> {
    xml.text_with(name, &[("currencyID", amount.currency().code())], &amount.to_decimal().to_string())
}

fn percent(rate: Percentage) -> String {
    rate.as_decimal().normalize().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_begins_with_its_subject_and_never_with_an_unknown_one() {
        let text = |subject: Option<&str>, text: &str| {
            note(&Note { subject: subject.map(|subject| subject.parse().expect("a subject")), text: text.to_owned() })
        };
        assert_eq!(text(Some("PMD"), "Late payment"), "#PMD#Late payment");
        assert_eq!(text(None, "Thanks"), "Thanks");
        assert_eq!(text(None, "#a1b#"), "# a1b#");
        assert_eq!(text(None, "see #42 and #43"), "see #42 and #43");
    }
}
