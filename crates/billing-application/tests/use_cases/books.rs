//! The test fixture of all examples: one organization, entity `main` with prefix `UB` in UTC, and customer `acme`.

use billing_application::UseCase;
use billing_application::billing_run::BillingRunRequest;
use billing_application::catalog::{
    TaxBasisPatch, WantedEntity, create_customer, create_entity, create_pricing, create_usage_product, edit_pricing,
    edit_usage_product,
};
use billing_application::charges::{ChargeRequest, ChargeView, record_charge};
use billing_application::contracts::{
    ContractRequest, ContractView, cancel_contract, change_quantity, create_contract, edit_contract, get_contract,
    resume_contract,
};
use billing_application::documents::{DocumentView, record_payment, void_document};
use billing_application::dry_run::Effects;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::usage::{
    Atomicity, EventAnswer, EventUpdate, IngestOutcome, NO_ANSWER, NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict,
    delete_event, get_event, record_event, record_usage, update_event,
};
use billing_application::verify::verify;
use billing_domain::catalog::{LineItem, Pricing, PricingContent, UsageProductProfile};
use billing_domain::charge::NewCharge;
use billing_domain::contract::amendment::{CancelAt, ContractEdit, EffectiveFrom, ProductPatch, QuantityChange};
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::document::lines::BillWith;
use billing_domain::document::{DocumentKind, DocumentState, Purpose};
use billing_domain::labels::LabelKey;
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::metadata::Metadata;
use billing_domain::money::SignedPrice;
use billing_domain::page::PageRequest;
use billing_domain::party::{Customer, Entity, NetTerms, NumberPrefix};
use billing_domain::patch::{Changes, Patch};
use billing_domain::ports::{EventFilter, EventSortKey};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, DocumentRef, EventRef};
use billing_domain::refusal::MatchRefusal;
use billing_domain::usage::{AnswerForm, ReportData, ReportValue, Validations};
use billing_testkit::fixtures;

use crate::support::{Bench, read, run, run_billing};

/// The response to an event: the numbers of its documents.
pub(crate) const NUMBERS: EventAnswer = EventAnswer { form: AnswerForm::Event, render: |view| view.document_numbers.to_string() };

/// Tiers: up to 100 at 0.10, up to 1,000 at 0.05, above at 0.01.
pub(crate) const THREE_TIERS: &[(Option<&str>, &str, &str)] =
    &[(Some("100"), "0.10", "0"), (Some("1000"), "0.05", "0"), (None, "0.01", "0")];

pub(crate) struct Books {
    pub(crate) bench: Bench,
}

impl Books {
    /// Returns books whose entity is in UTC and grants 60 days to pay.
    pub(crate) fn at(now: &str) -> Self {
        Self::with(now, |_| {}, |_| {})
    }

    /// Returns books with a changed entity and customer.
    pub(crate) fn with(now: &str, entity: impl FnOnce(&mut Entity), customer: impl FnOnce(&mut Customer)) -> Self {
        let books = Self { bench: Bench::at(now) };
        let (services, principal) = (&books.bench.services, &books.bench.principal);
        let mut main = fixtures::entity("main");
        main.profile.number_prefix = NumberPrefix::parse("UB").expect("a prefix");
        main.profile.net_terms = Some(NetTerms::Days(60));
        entity(&mut main);
        let wanted = WantedEntity { profile: main.profile, is_default: None, tax: TaxBasisPatch::default() };
        run(services, principal, UseCase::CreateEntity, |cx| create_entity(cx, Some(main.entity_ref), wanted))
            .expect("an entity");
        let mut acme = fixtures::customer(&*books.bench.ids, "acme");
        customer(&mut acme);
        run(services, principal, UseCase::CreateCustomer, |cx| create_customer(cx, Some(acme.customer_ref), acme.profile.into()))
            .expect("a customer");
        let calls = fixtures::usage_product("calls");
        run(services, principal, UseCase::CreateUsageProduct, |cx| {
            create_usage_product(cx, Some(calls.usage_product_ref), calls.profile)
        })
        .expect("a usage product");
        books
    }

    /// Sets the clock.
    pub(crate) fn clock(&self, now: &str) {
        self.bench.clock.set(fixtures::at(now));
    }

    /// Sets the clock and runs billing.
    pub(crate) fn bill(&self, now: &str) {
        self.clock(now);
        let report =
            run_billing(&self.bench.services, &self.bench.principal, BillingRunRequest::whole(false)).expect("a billing run");
        assert!(report.failed.is_empty(), "{report:?}");
    }

    pub(crate) fn pricing(&self, reference: &str, line_items: Vec<LineItem>) -> Pricing {
        self.pricing_with(reference, line_items, |_| {})
    }

    pub(crate) fn pricing_with(
        &self,
        reference: &str,
        line_items: Vec<LineItem>,
        change: impl FnOnce(&mut PricingContent),
    ) -> Pricing {
        let mut made = fixtures::pricing(reference, line_items);
        change(&mut made.content);
        run(&self.bench.services, &self.bench.principal, UseCase::CreatePricing, |cx| {
            create_pricing(cx, Some(made.pricing_ref), made.content)
        })
        .expect("a pricing")
    }

    /// Names the label of a usage product whose distinct values `UNIQUE` counts.
    pub(crate) fn counting(&self, usage_product: &str, label: &str) {
        let label = LabelKey::parse(label).expect("a label");
        let edit = Changes::of(move |profile: &mut UsageProductProfile| profile.unique_by = Some(label.clone()));
        let usage_product_ref = fixtures::usage_product_ref(usage_product);
        run(&self.bench.services, &self.bench.principal, UseCase::EditUsageProduct, |cx| {
            edit_usage_product(cx, &usage_product_ref, &edit)
        })
        .expect("a usage product");
    }

    /// Replaces the line items of a pricing.
    pub(crate) fn reprice(&self, pricing: &Pricing, line_items: Vec<LineItem>) {
        let edit = Changes::of(move |content: &mut PricingContent| content.line_items.clone_from(&line_items));
        run(&self.bench.services, &self.bench.principal, UseCase::EditPricing, |cx| {
            edit_pricing(cx, &pricing.pricing_ref, &edit)
        })
        .expect("a pricing");
    }

    pub(crate) fn contract(&self, products: Vec<RequestedProduct>) -> ContractRef {
        self.try_contract(products, false).expect("a contract")
    }

    pub(crate) fn try_contract(&self, products: Vec<RequestedProduct>, allow_backdated: bool) -> UseCaseResult<ContractRef> {
        let customer_ref = fixtures::customer_ref("acme");
        let metadata = Metadata::default();
        let request = ContractRequest { customer_ref, po_number: None, metadata, products, allow_backdated };
        let made = run(&self.bench.services, &self.bench.principal, UseCase::CreateContract, |cx| create_contract(cx, &request))?;
        Ok(made.contract.contract_ref)
    }

    pub(crate) fn edit(&self, contract: ContractRef, products: Vec<ProductPatch>, since: EffectiveFrom) -> UseCaseResult<()> {
        self.try_edit(contract, products, since, None, false).map(|_| ())
    }

    pub(crate) fn try_edit(
        &self,
        contract: ContractRef,
        products: Vec<ProductPatch>,
        since: EffectiveFrom,
        version: Option<u32>,
        allow_backdated: bool,
    ) -> UseCaseResult<ContractView> {
        let edit = ContractEdit { po_number: Patch::Keep, metadata: Patch::Keep, products: Some(products), since, version };
        run(&self.bench.services, &self.bench.principal, UseCase::EditContract, |cx| {
            edit_contract(cx, contract, None, &edit, allow_backdated)
        })
    }

    /// Returns the effects of an edit and stores nothing.
    pub(crate) fn try_dry_edit(
        &self,
        contract: ContractRef,
        products: Vec<ProductPatch>,
        since: EffectiveFrom,
    ) -> UseCaseResult<Effects> {
        let edit = ContractEdit { po_number: Patch::Keep, metadata: Patch::Keep, products: Some(products), since, version: None };
        run(&self.bench.services, &self.bench.principal, UseCase::EditContract, |cx| {
            cx.dry_run(&mut |cx| edit_contract(cx, contract, None, &edit, false).map(drop))
        })
    }

    /// Changes the quantity of a pricing's only line item from today on.
    pub(crate) fn quantity(&self, contract: ContractRef, pricing: &Pricing, quantity: &str, prorate: bool) {
        let line_item_id = pricing.content.line_items[0].id.clone();
        let of_item = QuantityChange::of(pricing.pricing_ref.clone(), line_item_id, fixtures::quantity(quantity));
        let change = QuantityChange { prorate, ..of_item };
        run(&self.bench.services, &self.bench.principal, UseCase::ChangeQuantity, |cx| {
            change_quantity(cx, contract, &change, false)
        })
        .expect("a changed quantity");
    }

    pub(crate) fn cancel(&self, contract: ContractRef, last_day: CancelAt) -> String {
        let amended = run(&self.bench.services, &self.bench.principal, UseCase::CancelContract, |cx| {
            cancel_contract(cx, contract, last_day, false)
        });
        state_of(amended.expect("a cancellation"))
    }

    pub(crate) fn resume(&self, contract: ContractRef) -> UseCaseResult<String> {
        run(&self.bench.services, &self.bench.principal, UseCase::ResumeContract, |cx| resume_contract(cx, contract, false))
            .map(state_of)
    }

    /// Returns the number of the newest version.
    pub(crate) fn version(&self, contract: ContractRef) -> u32 {
        read(&self.bench.services, &self.bench.principal, UseCase::GetContract, |cx| get_contract(cx, contract))
            .expect("a contract")
            .contract
            .version
    }

    pub(crate) fn state(&self, contract: ContractRef) -> String {
        let view = read(&self.bench.services, &self.bench.principal, UseCase::GetContract, |cx| get_contract(cx, contract));
        state_of(view.expect("a contract"))
    }

    /// Reports calls of the customer.
    pub(crate) fn calls(&self, occurred_at: &str, quantity: &str) -> EventRef {
        self.report(occurred_at, quantity, None).expect("an accepted event")
    }

    pub(crate) fn report(&self, occurred_at: &str, quantity: &str, validations: Option<Validations>) -> UseCaseResult<EventRef> {
        let event = NewUsageEvent { validations, ..calls(occurred_at, quantity) };
        let taken =
            run(&self.bench.services, &self.bench.principal, UseCase::RecordUsage, |cx| record_event(cx, event, NO_ANSWER))?;
        Ok(taken.now().expect("a newly recorded event").event.event_ref)
    }

    /// Reports calls of the customer with one label.
    pub(crate) fn labeled(&self, occurred_at: &str, quantity: &str, (key, text): (&str, &str)) -> UseCaseResult<EventRef> {
        let labels = ReportData::new([(key.to_owned(), ReportValue::Text(text.to_owned()))]);
        let event = NewUsageEvent { report_data: Some(labels), ..calls(occurred_at, quantity) };
        self.slice(&[event], Atomicity::PerEvent)
            .pop()
            .expect("an outcome")
            .map(|taken| taken.now().expect("a newly recorded event").event.event_ref)
    }

    /// Records events in one transaction. The response to an event with a key is the event's document numbers.
    pub(crate) fn slice(&self, events: &[NewUsageEvent], neighbours: Atomicity) -> Vec<UseCaseResult<IngestOutcome>> {
        self.try_slice(events, neighbours).expect("an accepted slice")
    }

    pub(crate) fn try_slice(
        &self,
        events: &[NewUsageEvent],
        neighbours: Atomicity,
    ) -> UseCaseResult<Vec<UseCaseResult<IngestOutcome>>> {
        run(&self.bench.services, &self.bench.principal, UseCase::RecordUsage, |cx| record_usage(cx, events, neighbours, NUMBERS))
    }

    /// Returns the only event.
    pub(crate) fn only_event(&self) -> EventRef {
        let (organization, filter) = (self.bench.principal.organization(), EventFilter::default());
        let found = self.bench.read(|tx| tx.events(organization, &filter, EventSortKey::Timestamp, PageRequest::LARGEST));
        let [event] = found.as_slice() else { panic!("{} events", found.len()) };
        event.event_ref
    }

    pub(crate) fn update(&self, event: EventRef, occurred_at: Option<&str>, quantity: Option<&str>) {
        let update = EventUpdate {
            occurred_at: occurred_at.map(fixtures::at),
            quantity: quantity.map(fixtures::quantity),
            ..EventUpdate::default()
        };
        run(&self.bench.services, &self.bench.principal, UseCase::UpdateEvent, |cx| update_event(cx, event, &update))
            .expect("an update");
    }

    pub(crate) fn delete(&self, event: EventRef) {
        run(&self.bench.services, &self.bench.principal, UseCase::DeleteEvent, |cx| delete_event(cx, event)).expect("a deletion");
    }

    /// Records a charge with quantity 1 on a day.
    pub(crate) fn charge(
        &self,
        contract_ref: ContractRef,
        date: &str,
        name: &str,
        unit_price: &str,
    ) -> UseCaseResult<ChargeView> {
        self.charge_with(BillWith::Usage, contract_ref, date, name, unit_price)
    }

    pub(crate) fn charge_with(
        &self,
        bill_with: BillWith,
        contract_ref: ContractRef,
        date: &str,
        name: &str,
        unit_price: &str,
    ) -> UseCaseResult<ChargeView> {
        let charge = NewCharge {
            product_no: None,
            charge_ref: None,
            product_pricing_ref: None,
            date: fixtures::date(date),
            name: fixtures::line(name),
            quantity: Quantity::ONE,
            unit_price: SignedPrice::parse(unit_price).expect("a price"),
            unit: None,
            bill_with,
            discountable: false,
            goods: false,
            note: None,
            reason: None,
        };
        let request = ChargeRequest { contract_ref, charge, issue: false };
        run(&self.bench.services, &self.bench.principal, UseCase::RecordCharge, |cx| record_charge(cx, &request))
    }

    /// Returns the `related_document_numbers` of an event.
    pub(crate) fn numbers_of(&self, event: EventRef) -> String {
        let view =
            read(&self.bench.services, &self.bench.principal, UseCase::GetEvent, |cx| get_event(cx, event)).expect("an event");
        view.document_numbers.to_string()
    }

    pub(crate) fn reference(&self, number: &str) -> DocumentRef {
        let all = self.bench.documents();
        let opened = all.iter().filter_map(|view| view.opened.as_ref()).find(|opened| opened.number.to_string() == number);
        opened.expect(number).document_ref
    }

    pub(crate) fn void(&self, number: &str) -> UseCaseResult<()> {
        let document_ref = self.reference(number);
        run(&self.bench.services, &self.bench.principal, UseCase::VoidDocument, |cx| void_document(cx, document_ref)).map(|_| ())
    }

    pub(crate) fn pay(&self, number: &str, amount: &str) -> UseCaseResult<()> {
        let metadata = Metadata::default();
        let facts = NewPayment { amount: amount.to_owned(), paid_date: None, reference: None, method: None, metadata };
        let document_ref = self.reference(number);
        run(&self.bench.services, &self.bench.principal, UseCase::RecordPayment, |cx| {
            record_payment(cx, document_ref, &facts, false)
        })
        .map(|_| ())
    }

    /// Returns all documents, oldest first, as the page shows them. Checks all invariants.
    pub(crate) fn documents(&self) -> String {
        let seen = verify(&self.bench.services, false).expect("a verification");
        let findings = seen.into_iter().flat_map(|(_, seen)| seen.findings);
        // Documents that wait for a billing run are not errors: each case decides when to run billing.
        let wrong: Vec<_> = findings.filter(|finding| !finding.detail.ends_with("a billing run would issue it")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        shown(&self.bench.documents())
    }

    /// Returns the documents with one of these numbers.
    pub(crate) fn only(&self, numbers: &[&str]) -> String {
        let all = self.documents();
        let blocks = all.split_inclusive("\n\n").map(str::trim_end);
        let wanted = blocks.filter(|block| numbers.iter().any(|number| block.starts_with(&format!("{number} "))));
        wanted.collect::<Vec<_>>().join("\n\n")
    }
}

/// Returns an event with calls of the customer.
pub(crate) fn calls(occurred_at: &str, quantity: &str) -> NewUsageEvent {
    NewUsageEvent {
        customer: NamedCustomer::Ref(fixtures::customer_ref("acme")),
        usage_product: NamedUsageProduct::Ref(fixtures::usage_product_ref("calls")),
        occurred_at: fixtures::at(occurred_at),
        is_time_of_receipt: false,
        quantity: fixtures::quantity(quantity),
        report_data: None,
        validations: None,
        formatted: None,
        key: None,
        on_conflict: OnConflict::Reject,
        occurred: false,
        hold_ref: None,
        import: None,
    }
}

/// Formats documents as the page shows them, separated by empty lines.
pub(crate) fn shown(documents: &[DocumentView]) -> String {
    documents.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn one(document: &DocumentView) -> String {
    let state = match document.state {
        DocumentState::Draft => "DRAFT",
        DocumentState::Issued => "ISSUED",
        DocumentState::PartiallyPaid => "PARTIALLY_PAID",
        DocumentState::Paid => "PAID",
        DocumentState::Void => "VOID",
        DocumentState::Uncollectible => "UNCOLLECTIBLE",
        DocumentState::Settled => "SETTLED",
    };
    let number = document.opened.as_ref().map_or_else(
        || match document.kind {
            DocumentKind::Invoice => "(invoice without a number)".to_owned(),
            DocumentKind::Credit => "(credit without a number)".to_owned(),
            DocumentKind::Debit => "(debit without a number)".to_owned(),
        },
        |opened| opened.number.to_string(),
    );
    let mut head = format!("{number} {state}");
    if let Some(parent) = document.opened.as_ref().and_then(|opened| opened.parent.as_ref()) {
        head = format!("{head}, of {}", parent.number);
    }
    if document.opened.as_ref().is_some_and(|opened| opened.replaces.is_some()) {
        head = format!("{head}, a replacement");
    }
    if let Some(issued) = document.issued {
        head = format!("{head}, issued {}", issued.issue_date);
        if let Some(due_date) = issued.due_date {
            head = format!("{head}, due {due_date}");
        }
        if issued.overdue {
            head.push_str(", overdue");
        }
    }
    if document.state == DocumentState::Void {
        return head;
    }
    let content = &document.content;
    let mut lines = vec![head];
    for product in &content.products {
        for line in &product.lines {
            // An edit changes the price of usage, not its quantity.
            let used = line.usage.as_ref();
            let used = used.filter(|usage| !usage.quantity.is_zero() || document.purpose != Purpose::Adjustment);
            let used = used.map_or(String::new(), |usage| format!(" × {}", usage.quantity.normalize()));
            let steps =
                line.quantities.iter().map(|step| format!("{} from {}", step.quantity.as_decimal().normalize(), step.from));
            let steps = steps.collect::<Vec<_>>().join(", ");
            let agreed = if steps.is_empty() { steps } else { format!(" ({steps})") };
            let amount = line.amount.to_decimal();
            lines.push(format!("  {} {}{agreed}{used}: {amount}", line.service_period, line.name.as_str()));
        }
        if product.discount.minor() != 0 {
            lines.push(format!("  discount {} %: -{}", product.rates.discount.as_decimal(), product.discount.to_decimal()));
        }
    }
    for tax in content.taxes.iter().filter(|tax| tax.amount.minor() != 0) {
        lines.push(format!(
            "  tax {} % of {}: {}",
            tax.treatment.rate.as_decimal(),
            tax.base.to_decimal(),
            tax.amount.to_decimal()
        ));
    }
    let mut total = format!("  total {}", content.total);
    if document.settlement.credits.minor() != 0 {
        total = format!("{total}, credits {}", document.settlement.credits.to_decimal());
    }
    if document.settlement.paid.minor() != 0 {
        total = format!("{total}, paid {}", document.settlement.paid.to_decimal());
    }
    if let Some(due) = document.owed.amount_due.filter(|due| *due != content.total) {
        total = format!("{total}, left to pay {}", due.to_decimal());
    }
    if document.owed.written_off.minor() != 0 {
        total = format!("{total}, written off {}", document.owed.written_off.to_decimal());
    }
    if let Some(unapplied) = document.owed.unapplied.filter(|unapplied| unapplied.minor() != 0) {
        total = format!("{total}, unapplied {}", unapplied.to_decimal());
    }
    lines.push(total);
    lines.join("\n")
}

fn state_of(amended: ContractView) -> String {
    format!("{:?}", amended.state).to_uppercase()
}

/// Returns the API error code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(refused: UseCaseResult<T>) -> String {
    match refused.expect_err("a refusal") {
        UseCaseError::Conflict { code, .. } => code.to_owned(),
        UseCaseError::NoMatch(MatchRefusal::NoMatchingContract | MatchRefusal::NoChargedProduct) => {
            "no_matching_contract".to_owned()
        }
        UseCaseError::NoMatch(MatchRefusal::NoMatchingLine(_)) => "no_matching_line".to_owned(),
        UseCaseError::NoMatch(MatchRefusal::CurrencyMismatch { .. } | MatchRefusal::EntityMismatch { .. }) => {
            "validation_mismatch".to_owned()
        }
        UseCaseError::Invalid(violations) => violations.iter().map(|violation| violation.code).collect::<Vec<_>>().join(", "),
        other => panic!("{other}"),
    }
}

/// Returns a product patch that changes nothing.
pub(crate) fn same(pricing: &Pricing) -> ProductPatch {
    ProductPatch::of(pricing.pricing_ref.clone())
}

/// Returns a product patch that applies the current pricing.
pub(crate) fn repriced(pricing: &Pricing) -> ProductPatch {
    ProductPatch { reprice: true, ..same(pricing) }
}
