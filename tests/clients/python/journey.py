"""From a log-in to an invoice with nothing but the client of the release.

Takes BASE_URL, ADMIN_EMAIL and ADMIN_PASSWORD from the environment, and prints what it made as one line of JSON.
"""

import datetime
import json
import os
from decimal import Decimal
from uuid import UUID, uuid4

from usage_billing_client import AuthenticatedClient, Client, connect
from usage_billing_client.api.auth import generate_key, list_keys, log_in
from usage_billing_client.api.catalog import (
    create_customer,
    create_entity,
    create_pricing,
    create_usage_product,
    get_pricing,
)
from usage_billing_client.api.contracts import create_contract, current_invoices, get_contract
from usage_billing_client.api.usage import delete_event, get_event, get_event_history, record_event, update_event
from usage_billing_client.models import (
    AdminSession,
    ApiKey,
    BillingCycleBody,
    Contract,
    ContractBody,
    ContractCreated,
    ContractProductBody,
    Customer,
    CustomerBody,
    Document,
    DocumentKind,
    DocumentState,
    DueUpon,
    Entity,
    EntityBody,
    Event,
    EventAction,
    EventBody,
    EventResult,
    EventUpdateBody,
    FlatPrice,
    FlatPriceBody,
    GeneratedKey,
    GraduatedPrice,
    GraduatedPriceBody,
    KeyBody,
    LineItemBody,
    LogInBody,
    Pricing,
    PricingBody,
    ReportData,
    Scope,
    TierBody,
    UsageProduct,
    UsageProductBody,
)
from usage_billing_client.models.charge_kind import ChargeKind
from usage_billing_client.models.cycle_unit import CycleUnit

BASE_URL = os.environ["BASE_URL"]
# More digits than a float has.
QUANTITY = "12345678901234.000001"


def expect(kind, answer):
    """The answer, which has to be of this type."""
    assert isinstance(answer, kind), f"{kind.__name__} is expected, not {answer}"
    return answer


def equal(found, expected):
    assert found == expected, f"{expected!r} is expected, not {found!r}"


def refused(answer, status, code):
    """The problem that an answer has to be."""
    assert hasattr(answer, "request_id"), f"a problem is expected, not {answer}"
    equal((answer.status, answer.code), (status, code))
    return answer


def connect_with_a_new_key() -> AuthenticatedClient:
    admin = Client(base_url=BASE_URL)
    email, password = os.environ["ADMIN_EMAIL"], os.environ["ADMIN_PASSWORD"]
    session = expect(AdminSession, log_in.sync(client=admin, body=LogInBody(email=email, password=password)))
    equal(session.email, email)
    # The session's cookie stays with the client.
    body = KeyBody(name="python", scopes=[Scope.USAGEWRITE, Scope.CONTRACTSWRITE, Scope.CATALOGWRITE, Scope.READ])
    key = expect(GeneratedKey, generate_key.sync(client=admin, body=body))
    expect(GeneratedKey, generate_key.sync(client=admin))
    listed = [expect(ApiKey, listed) for listed in expect(list, list_keys.sync(client=admin, page_size=1000))]
    equal([listed.name for listed in listed if listed.api_key_ref == key.api_key_ref], ["python"])

    nobody = Client(base_url=BASE_URL)
    wrong = LogInBody(api_key=key.api_key, password="wrong")
    refused(log_in.sync(client=nobody, body=wrong), 401, "invalid_credentials")
    return connect(BASE_URL, key.api_key, key.password)


def make_catalog(client: AuthenticatedClient) -> None:
    entity = EntityBody(entity_ref="py-entity", name="Python", number_prefix="PY", grace_hours=3)
    expect(Entity, create_entity.sync(client=client, body=entity))
    product = UsageProductBody(usage_product_ref="py-calls", name="API calls", unit="call")
    expect(UsageProduct, create_usage_product.sync(client=client, body=product))
    tiers = [TierBody(up_to=1000, unit_price="0.10"), TierBody(unit_price="0.01")]
    pricing = PricingBody(
        product_pricing_ref="py-plan",
        name="Plan",
        currency="EUR",
        line_items=[
            LineItemBody(
                line_item_id="fee", kind=ChargeKind.FIXED, price=FlatPriceBody(model="FLAT", amount="49.00")
            ),
            LineItemBody(
                line_item_id="calls",
                kind=ChargeKind.USAGE,
                usage_product_ref="py-calls",
                price=GraduatedPriceBody(model="GRADUATED", tiers=tiers),
            ),
        ],
    )
    expect(Pricing, create_pricing.sync(client=client, body=pricing))
    read = expect(Pricing, get_pricing.sync("py-plan", client=client))
    fee, calls = read.line_items
    equal(expect(FlatPrice, fee.price).amount, "49.00")
    tiers = [(tier.up_to, tier.unit_price) for tier in expect(GraduatedPrice, calls.price).tiers]
    equal(tiers, [("1000", "0.10"), (None, "0.01")])
    customer = CustomerBody(
        customer_ref="py-acme", name="Acme", tax="19", net_terms="DUE_UPON_RECEIPT", entity_ref="py-entity"
    )
    made = expect(Customer, create_customer.sync(client=client, body=customer))
    equal((made.net_terms, made.tax, made.legal_name), (DueUpon.DUE_UPON_RECEIPT, "19", None))


def make_contract(client: AuthenticatedClient) -> UUID:
    today = datetime.datetime.now(datetime.UTC).date()
    product = ContractProductBody(
        product_pricing_ref="py-plan",
        billing_start_date=today - datetime.timedelta(days=10),
        billing_end_date=today + datetime.timedelta(days=300),
        billing_cycle=BillingCycleBody(unit=CycleUnit.ONE_TIME),
        discount="12.5",
    )
    body = ContractBody(customer_ref="py-acme", po_number="PO-17", products=[product])
    contract_ref = expect(ContractCreated, create_contract.sync(client=client, body=body)).contract_ref
    contract = expect(Contract, get_contract.sync(str(contract_ref), client=client))
    read = contract.products[0]
    equal((read.billing_start_date, read.discount, read.net_terms), (product.billing_start_date, "12.5", None))
    equal([item.line_item_id for item in read.line_items], ["fee", "calls"])
    return contract_ref


def report_events(client: AuthenticatedClient) -> EventResult:
    now = datetime.datetime.now(datetime.UTC)
    bad = EventBody(timestamp=now, quantity=-1, customer_ref="py-acme", usage_product_ref="py calls")
    problem = refused(record_event.sync(client=client, body=bad), 422, "validation_failed")
    wrong = {field.pointer: field.code for field in problem.errors}
    equal(wrong, {"/usage_product_ref": "invalid_format", "/quantity": "out_of_range"})

    data = ReportData.from_dict({"region": "eu-1", "requests": 7, "trial": False})
    body = EventBody(
        timestamp=now,
        quantity=QUANTITY,
        customer_ref="py-acme",
        usage_product_ref="py-calls",
        additional_report_data=data,
    )
    recorded = expect(EventResult, record_event.sync(client=client, body=body))
    equal(recorded.related_document_numbers, "PY-INV-1")

    event = expect(Event, get_event.sync(str(recorded.event_ref), client=client))
    equal((event.event_ref, event.related_document_ref), (recorded.event_ref, recorded.related_document_ref))
    equal((event.timestamp, event.customer_name, event.document_state), (now, "Acme", DocumentState.DRAFT))
    equal(event.quantity, QUANTITY)
    equal(event.additional_report_data.to_dict(), {"region": "eu-1", "requests": "7", "trial": False})
    return recorded


def change_events(client: AuthenticatedClient) -> None:
    now = datetime.datetime.now(datetime.UTC)
    body = EventBody(timestamp=now, quantity=0.1, customer_ref="py-acme", usage_product_ref="py-calls")
    event_ref = expect(EventResult, record_event.sync(client=client, body=body)).event_ref
    updated = expect(Event, update_event.sync(client=client, body=EventUpdateBody(event_ref=event_ref, quantity=3)))
    equal((updated.quantity, updated.revision), ("3", 2))
    equal(delete_event.sync_detailed(str(event_ref), client=client).status_code, 204)
    refused(get_event.sync(str(event_ref), client=client), 404, "event_not_found")
    history = expect(list, get_event_history.sync(str(event_ref), client=client))
    expected = [(EventAction.CREATED, "0.1"), (EventAction.UPDATED, "3"), (EventAction.DELETED, "3")]
    equal([(revision.action, revision.event.quantity) for revision in history], expected)


def check_invoice(client: AuthenticatedClient, contract_ref: UUID, recorded: EventResult) -> None:
    (invoice,) = expect(list, current_invoices.sync(str(contract_ref), client=client))
    invoice = expect(Document, invoice)
    equal((invoice.kind, invoice.document_ref), (DocumentKind.INVOICE, recorded.related_document_ref))
    fee, calls = invoice.products[0].line_items
    equal(calls.quantity, QUANTITY)
    # 1,000 at 0.10, the rest at 0.01; then 12.5 % off, and 19 % tax.
    amounts = (fee.amount, calls.amount, invoice.sub_total, invoice.total_discount, invoice.total_tax, invoice.total)
    expected = "49.00 123456789102.34 123456789151.34 15432098643.92 20524691196.41 128549381703.83"
    equal(" ".join(amounts), expected)
    equal(sum(Decimal(line.amount) for line in (fee, calls)), Decimal(invoice.sub_total))


def main() -> None:
    client = connect_with_a_new_key()
    make_catalog(client)
    contract_ref = make_contract(client)
    recorded = report_events(client)
    change_events(client)
    check_invoice(client, contract_ref, recorded)
    refused(get_contract.sync(str(uuid4()), client=client), 404, "contract_not_found")
    print(json.dumps({"event_ref": str(recorded.event_ref), "document_number": recorded.related_document_numbers}))


main()
