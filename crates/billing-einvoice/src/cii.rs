//! Cross Industry Invoice D16B of UN/CEFACT, in the subset of Factur-X and ZUGFeRD for the profile EN 16931.

use std::io;

use billing_domain::calendar::{Date, Period};
use billing_domain::einvoice::business_terms::{
    Allowance, BusinessTerms, InvoiceLine, PRODUCT_NO, Party, PaymentInstructions, PostalAddress, TaxSubtotal,
};
use billing_domain::money::{Money, Percentage};
use billing_domain::party::legal::Contact;
use billing_domain::refs::ProductNo;
use billing_domain::tax::TaxCategory;

use crate::xml::Xml;

const NAMESPACES: [(&str, &str); 4] = [
    ("xmlns:rsm", "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"),
    ("xmlns:ram", "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"),
    ("xmlns:qdt", "urn:un:unece:uncefact:data:standard:QualifiedDataType:100"),
    ("xmlns:udt", "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100"),
];
/// The date format `YYYYMMDD` in UNTDID 2379.
const DATE_FORMAT: (&str, &str) = ("format", "102");

/// Writes an e-invoice.
pub(crate) fn write(terms: &BusinessTerms) -> io::Result<Vec<u8>> {
    Xml::document("rsm:CrossIndustryInvoice", &NAMESPACES, |xml| {
        xml.element("rsm:ExchangedDocumentContext", |xml| {
            if let Some(process) = terms.process {
                xml.element("ram:BusinessProcessSpecifiedDocumentContextParameter", |xml| xml.text("ram:ID", process))?;
            }
            xml.element("ram:GuidelineSpecifiedDocumentContextParameter", |xml| xml.text("ram:ID", &terms.specification()))
        })?;
        xml.element("rsm:ExchangedDocument", |xml| document(xml, terms))?;
        xml.element("rsm:SupplyChainTradeTransaction", |xml| {
            for line in &terms.lines {
                xml.element("ram:IncludedSupplyChainTradeLineItem", |xml| write_line(xml, line))?;
            }
            xml.element("ram:ApplicableHeaderTradeAgreement", |xml| agreement(xml, terms))?;
            xml.element("ram:ApplicableHeaderTradeDelivery", |xml| {
                xml.element("ram:ActualDeliverySupplyChainEvent", |xml| date(xml, "ram:OccurrenceDateTime", terms.delivery_date))
            })?;
            xml.element("ram:ApplicableHeaderTradeSettlement", |xml| settlement(xml, terms))
        })
    })
}

fn document(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    xml.text("ram:ID", &terms.number)?;
    xml.text("ram:TypeCode", terms.type_code.as_str())?;
    date(xml, "ram:IssueDateTime", terms.issue_date)?;
    terms.notes.iter().try_for_each(|note| {
        xml.element("ram:IncludedNote", |xml| {
            xml.text("ram:Content", &note.text)?;
            xml.optional("ram:SubjectCode", note.subject.map(|subject| subject.as_str()))
        })
    })
}

fn write_line(xml: &mut Xml, line: &InvoiceLine) -> io::Result<()> {
    xml.element("ram:AssociatedDocumentLineDocument", |xml| xml.text("ram:LineID", &line.number.to_string()))?;
    xml.element("ram:SpecifiedTradeProduct", |xml| {
        xml.optional("ram:SellerAssignedID", line.item_id.as_deref())?;
        xml.text("ram:Name", &line.name)?;
        xml.optional("ram:Description", line.description.as_deref())?;
        let Some(ProductNo(number)) = line.product_no else { return Ok(()) };
        xml.element("ram:ApplicableProductCharacteristic", |xml| {
            xml.text("ram:Description", PRODUCT_NO)?;
            xml.text("ram:Value", &number.to_string())
        })
    })?;
    xml.element("ram:SpecifiedLineTradeAgreement", |xml| {
        xml.element("ram:NetPriceProductTradePrice", |xml| xml.text("ram:ChargeAmount", &line.unit_price.to_string()))
    })?;
    xml.element("ram:SpecifiedLineTradeDelivery", |xml| {
        let quantity = line.quantity.normalize().to_string();
        xml.text_with("ram:BilledQuantity", &[("unitCode", line.unit_code.as_str())], &quantity)
    })?;
    xml.element("ram:SpecifiedLineTradeSettlement", |xml| {
        xml.element("ram:ApplicableTradeTax", |xml| category(xml, line.category, line.rate))?;
        period(xml, line.period)?;
        xml.element("ram:SpecifiedTradeSettlementLineMonetarySummation", |xml| amount(xml, "ram:LineTotalAmount", line.amount))
    })
}

fn agreement(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    let seller = &terms.seller;
    xml.optional("ram:BuyerReference", terms.buyer_reference.as_deref())?;
    xml.element("ram:SellerTradeParty", |xml| {
        party(xml, &seller.party, seller.tax_registration.as_deref(), seller.contact.as_ref())
    })?;
    xml.element("ram:BuyerTradeParty", |xml| party(xml, &terms.buyer, None, None))?;
    match &terms.order_reference {
        Some(number) => xml.element("ram:BuyerOrderReferencedDocument", |xml| xml.text("ram:IssuerAssignedID", number)),
        None => Ok(()),
    }
}

fn party(xml: &mut Xml, party: &Party, tax_registration: Option<&str>, contact: Option<&Contact>) -> io::Result<()> {
    xml.text("ram:Name", &party.name)?;
    if party.registration.is_some() || party.trading_name.is_some() {
        xml.element("ram:SpecifiedLegalOrganization", |xml| {
            if let Some(registration) = &party.registration {
                match registration.scheme {
                    Some(scheme) => xml.text_with("ram:ID", &[("schemeID", scheme.as_str())], &registration.value)?,
                    None => xml.text("ram:ID", &registration.value)?,
                }
            }
            xml.optional("ram:TradingBusinessName", party.trading_name.as_deref())
        })?;
    }
    if let Some(contact) = contact.filter(|contact| **contact != Contact::default()) {
        xml.element("ram:DefinedTradeContact", |xml| write_contact(xml, contact))?;
    }
    xml.element("ram:PostalTradeAddress", |xml| address(xml, &party.address))?;
    if let Some(address) = &party.electronic_address {
        xml.element("ram:URIUniversalCommunication", |xml| {
            xml.text_with("ram:URIID", &[("schemeID", address.scheme.as_str())], address.value.as_str())
        })?;
    }
    for (id, scheme) in [(tax_registration, "FC"), (party.vat_id.as_deref(), "VA")] {
        let Some(id) = id else { continue };
        xml.element("ram:SpecifiedTaxRegistration", |xml| xml.text_with("ram:ID", &[("schemeID", scheme)], id))?;
    }
    Ok(())
}

fn write_contact(xml: &mut Xml, contact: &Contact) -> io::Result<()> {
    xml.optional("ram:PersonName", contact.name.as_ref().map(|name| name.as_str()))?;
    if let Some(phone) = &contact.phone {
        xml.element("ram:TelephoneUniversalCommunication", |xml| xml.text("ram:CompleteNumber", phone.as_str()))?;
    }
    match &contact.email {
        Some(email) => xml.element("ram:EmailURIUniversalCommunication", |xml| xml.text("ram:URIID", email.as_str())),
        None => Ok(()),
    }
}

fn address(xml: &mut Xml, address: &PostalAddress) -> io::Result<()> {
    xml.optional("ram:PostcodeCode", address.post_code.as_deref())?;
    xml.optional("ram:LineOne", address.line1.as_deref())?;
    xml.optional("ram:LineTwo", address.line2.as_deref())?;
    xml.optional("ram:CityName", address.city.as_deref())?;
    xml.optional("ram:CountryID", address.country.map(|country| country.as_str()))?;
    xml.optional("ram:CountrySubDivisionName", address.subdivision.as_deref())
}

fn settlement(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    let PaymentInstructions { code, reference, account } = &terms.payment;
    xml.text("ram:PaymentReference", reference)?;
    xml.optional("ram:TaxCurrencyCode", terms.tax_total_in_currency.map(|total| total.currency().code()))?;
    xml.text("ram:InvoiceCurrencyCode", terms.currency.code())?;
    xml.element("ram:SpecifiedTradeSettlementPaymentMeans", |xml| {
        xml.text("ram:TypeCode", code)?;
        let Some(account) = account else { return Ok(()) };
        xml.element("ram:PayeePartyCreditorFinancialAccount", |xml| {
            let number = Some(account.number.as_str());
            xml.optional("ram:IBANID", number.filter(|_| account.is_iban))?;
            xml.optional("ram:AccountName", account.name.as_deref())?;
            xml.optional("ram:ProprietaryID", number.filter(|_| !account.is_iban))
        })?;
        match &account.bic {
            Some(bic) => xml.element("ram:PayeeSpecifiedCreditorFinancialInstitution", |xml| xml.text("ram:BICID", bic)),
            None => Ok(()),
        }
    })?;
    for tax in &terms.taxes {
        xml.element("ram:ApplicableTradeTax", |xml| write_tax(xml, tax))?;
    }
    period(xml, terms.period)?;
    for allowance in &terms.allowances {
        xml.element("ram:SpecifiedTradeAllowanceCharge", |xml| write_allowance(xml, allowance))?;
    }
    if terms.payment_terms.is_some() || terms.due_date.is_some() {
        xml.element("ram:SpecifiedTradePaymentTerms", |xml| {
            xml.optional("ram:Description", terms.payment_terms.as_deref())?;
            match terms.due_date {
                Some(due) => date(xml, "ram:DueDateDateTime", due),
                None => Ok(()),
            }
        })?;
    }
    xml.element("ram:SpecifiedTradeSettlementHeaderMonetarySummation", |xml| totals(xml, terms))?;
    terms.preceding.iter().try_for_each(|preceding| {
        xml.element("ram:InvoiceReferencedDocument", |xml| {
            xml.text("ram:IssuerAssignedID", &preceding.number)?;
            xml.element("ram:FormattedIssueDateTime", |xml| {
                xml.text_with("qdt:DateTimeString", &[DATE_FORMAT], &compact(preceding.issue_date))
            })
        })
    })
}

fn write_tax(xml: &mut Xml, tax: &TaxSubtotal) -> io::Result<()> {
    amount(xml, "ram:CalculatedAmount", tax.tax)?;
    xml.text("ram:TypeCode", "VAT")?;
    xml.optional("ram:ExemptionReason", tax.exemption_reason.as_deref())?;
    amount(xml, "ram:BasisAmount", tax.base)?;
    xml.text("ram:CategoryCode", tax.category.as_str())?;
    xml.optional("ram:ExemptionReasonCode", tax.exemption_code.map(|code| code.as_str()))?;
    xml.optional("ram:RateApplicablePercent", tax.rate.map(percent).as_deref())
}

fn write_allowance(xml: &mut Xml, allowance: &Allowance) -> io::Result<()> {
    xml.element("ram:ChargeIndicator", |xml| xml.text("udt:Indicator", "false"))?;
    if let Some((base, percentage)) = allowance.percentage {
        xml.text("ram:CalculationPercent", &percent(percentage))?;
        amount(xml, "ram:BasisAmount", base)?;
    }
    amount(xml, "ram:ActualAmount", allowance.amount)?;
    xml.optional("ram:ReasonCode", allowance.reason_code)?;
    xml.optional("ram:Reason", allowance.reason.as_deref())?;
    xml.element("ram:CategoryTradeTax", |xml| category(xml, allowance.category, allowance.rate))
}

/// Writes the tax of a line or an allowance. What is not subject to tax has no rate.
fn category(xml: &mut Xml, category: TaxCategory, rate: Percentage) -> io::Result<()> {
    xml.text("ram:TypeCode", "VAT")?;
    xml.text("ram:CategoryCode", category.as_str())?;
    xml.optional("ram:RateApplicablePercent", Some(percent(rate)).filter(|_| category != TaxCategory::O).as_deref())
}

fn totals(xml: &mut Xml, terms: &BusinessTerms) -> io::Result<()> {
    let totals = &terms.totals;
    amount(xml, "ram:LineTotalAmount", totals.lines)?;
    // Present exactly if there are allowances (BR-CO-11).
    if !terms.allowances.is_empty() {
        amount(xml, "ram:AllowanceTotalAmount", totals.allowances)?;
    }
    amount(xml, "ram:TaxBasisTotalAmount", totals.net)?;
    for tax in [Some(totals.tax), terms.tax_total_in_currency].into_iter().flatten() {
        xml.text_with("ram:TaxTotalAmount", &[("currencyID", tax.currency().code())], &tax.to_decimal().to_string())?;
    }
    amount(xml, "ram:GrandTotalAmount", totals.total)?;
    if totals.paid.minor() != 0 {
        amount(xml, "ram:TotalPrepaidAmount", totals.paid)?;
    }
    amount(xml, "ram:DuePayableAmount", totals.due)
}

fn period(xml: &mut Xml, period: Period) -> io::Result<()> {
    xml.element("ram:BillingSpecifiedPeriod", |xml| {
        date(xml, "ram:StartDateTime", period.start())?;
        date(xml, "ram:EndDateTime", period.last_day())
    })
}

fn date(xml: &mut Xml, name: &str, date: Date) -> io::Result<()> {
    xml.element(name, |xml| xml.text_with("udt:DateTimeString", &[DATE_FORMAT], &compact(date)))
}

/// Returns a date as `YYYYMMDD`.
fn compact(date: Date) -> String {
    date.to_string().replace('-', "")
}

/// Writes an amount in the currency of the document, which only the tax total names.
fn amount(xml: &mut Xml, name: &str, amount: Money) -> io::Result<()> {
    xml.text(name, &amount.to_decimal().to_string())
}

fn percent(rate: Percentage) -> String {
    rate.as_decimal().normalize().to_string()
}
