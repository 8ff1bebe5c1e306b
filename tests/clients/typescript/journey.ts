// From a log-in to an invoice with nothing but the client of the release.
// Takes BASE_URL, ADMIN_EMAIL and ADMIN_PASSWORD from the environment, and prints what it made as one line of JSON.

import { deepStrictEqual as equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { env } from "node:process";
import { connect, createClient, type Client, type Schemas } from "usage-billing-client";

/** More digits than a number of JavaScript has. */
const QUANTITY = "12345678901234.000001";
const DAY_MS = 86_400_000;

function setting(name: string): string {
  const value = env[name];
  ok(value, `${name} is not set`);
  return value;
}

/** What was answered, which has to be a success. */
function expect<T>(answer: { data?: T; error?: Schemas["Problem"] }): T {
  ok(answer.data !== undefined, `a success is expected, not ${JSON.stringify(answer.error)}`);
  return answer.data;
}

/** The problem that an answer has to be. */
function refused(answer: { error?: Schemas["Problem"] }, status: number, code: string): Schemas["Problem"] {
  ok(answer.error, "a problem is expected");
  equal([answer.error.status, answer.error.code], [status, code]);
  return answer.error;
}

/** A day as a date, so many days from today. */
function date(days: number): string {
  return new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
}

async function connectWithANewKey(baseUrl: string): Promise<Client> {
  const nobody = createClient({ baseUrl });
  const administrator = { email: setting("ADMIN_EMAIL"), password: setting("ADMIN_PASSWORD") };
  const answer = await nobody.POST("/auth/login", { body: administrator });
  const session = expect(answer);
  ok(typeof session !== "string");
  equal(session.email, administrator.email);
  const cookie = answer.response.headers.getSetCookie().map((set) => set.split(";")[0]).join("; ");
  const admin = createClient({ baseUrl, headers: { Cookie: cookie } });
  expect(await admin.POST("/auth/keys/generate"));
  const scopes: Schemas["Scope"][] = ["usage:write", "contracts:write", "catalog:write", "read"];
  const key = expect(await admin.POST("/auth/keys/generate", { body: { name: "typescript", scopes } }));

  const wrong = await nobody.POST("/auth/login", { body: { api_key: key.api_key, password: "wrong" } });
  refused(wrong, 401, "invalid_credentials");
  return connect(baseUrl, key.api_key, key.password);
}

async function makeCatalog(api: Client): Promise<void> {
  const entity = { entity_ref: "ts-entity", name: "TypeScript", number_prefix: "TS" };
  expect(await api.POST("/api/entities/", { body: entity }));
  const usageProduct = { usage_product_ref: "ts-calls", name: "Calls", unit: "call" };
  expect(await api.POST("/api/usage/products/", { body: usageProduct }));
  const tiers: Schemas["TierBody"][] = [{ up_to: "1000", unit_price: "0.10" }, { unit_price: "0.01" }];
  const lineItems: Schemas["LineItemBody"][] = [
    { line_item_id: "fee", kind: "FIXED", price: { model: "FLAT", amount: "49.00" } },
    { line_item_id: "calls", kind: "USAGE", usage_product_ref: "ts-calls", price: { model: "GRADUATED", tiers } },
  ];
  const pricing = { product_pricing_ref: "ts-plan", name: "Plan", currency: "EUR", line_items: lineItems };
  const made = expect(await api.POST("/api/pricings/", { body: pricing }));
  const [fee, calls] = made.line_items.map((item) => item.price);
  // The model tells which fields there are.
  ok(fee?.model === "FLAT" && calls?.model === "GRADUATED");
  equal(fee.amount, "49.00");
  equal(calls.tiers.map((tier) => [tier.up_to, tier.unit_price]), [["1000", "0.10"], [null, "0.01"]]);
  const acme = { customer_ref: "ts-acme", name: "Acme", tax: "19", net_terms: "DUE_UPON_RECEIPT" };
  const customer = expect(await api.POST("/api/customers/", { body: acme }));
  equal([customer.net_terms, customer.tax, customer.legal_name], ["DUE_UPON_RECEIPT", "19", null]);
}

async function makeContract(api: Client): Promise<string> {
  const product: Schemas["ContractProductBody"] = {
    product_pricing_ref: "ts-plan",
    billing_start_date: date(-10),
    billing_end_date: date(300),
    billing_cycle: { unit: "ONE_TIME" },
    entity_ref: "ts-entity",
    discount: "12.5",
  };
  const made = expect(await api.POST("/api/contracts/", { body: { customer_ref: "ts-acme", products: [product] } }));
  const contract = expect(await api.GET("/api/contracts/{contract_ref}", { params: { path: made } }));
  const [read] = contract.products;
  equal([read?.billing_start_date, read?.discount, read?.net_terms], [product.billing_start_date, "12.5", null]);
  const query = { customer_ref: "ts-acme", pageSize: 20, pageNumber: 0 };
  equal(expect(await api.GET("/api/contracts/filter", { params: { query } })), [contract]);
  return made.contract_ref;
}

async function reportEvents(api: Client): Promise<Schemas["EventResult"]> {
  const usage = { timestamp: new Date().toISOString(), customer_ref: "ts-acme", usage_product_ref: "ts-calls" };
  const bad = await api.POST("/api/usage/event", { body: { ...usage, usage_product_ref: "ts calls", quantity: "-1" } });
  const wrong = refused(bad, 422, "validation_failed").errors.map((field) => [field.pointer, field.code]);
  equal(wrong, [["/usage_product_ref", "invalid_format"], ["/quantity", "out_of_range"]]);

  const data = { region: "eu-1", requests: "12.5", trial: false, note: null };
  const good = { ...usage, quantity: QUANTITY, additional_report_data: data };
  const recorded = expect(await api.POST("/api/usage/event", { body: good }));
  equal(recorded.related_document_numbers, "TS-INV-1");
  const params = { path: { event_ref: recorded.event_ref } };
  const event = expect(await api.GET("/api/usage/event/{event_ref}", { params }));
  equal([event.quantity, event.document_state, event.customer_name], [QUANTITY, "DRAFT", "Acme"]);
  equal([Date.parse(event.timestamp), event.additional_report_data], [Date.parse(usage.timestamp), data]);
  return recorded;
}

async function changeEvents(api: Client): Promise<void> {
  const usage = { timestamp: new Date().toISOString(), customer_ref: "ts-acme", usage_product_ref: "ts-calls" };
  const { event_ref } = expect(await api.POST("/api/usage/event", { body: { ...usage, quantity: "0.1" } }));
  const updated = expect(await api.POST("/api/usage/event/update", { body: { event_ref, quantity: "3" } }));
  equal([updated.quantity, updated.revision], ["3", 2]);
  const params = { path: { event_ref } };
  equal((await api.DELETE("/api/usage/event/{event_ref}", { params })).response.status, 204);
  refused(await api.GET("/api/usage/event/{event_ref}", { params }), 404, "event_not_found");
  const history = expect(await api.GET("/api/usage/event/history/{event_ref}", { params }));
  equal(history.map((revision) => revision.action), ["CREATED", "UPDATED", "DELETED"]);
}

async function checkInvoice(api: Client, contractRef: string, recorded: Schemas["EventResult"]): Promise<void> {
  const params = { path: { contract_ref: contractRef } };
  const [invoice] = expect(await api.GET("/api/contracts/invoices/current/{contract_ref}", { params }));
  ok(invoice);
  equal([invoice.kind, invoice.document_ref], ["INVOICE", recorded.related_document_ref]);
  const amounts = invoice.products[0]?.line_items.map((line) => [line.quantity, line.amount]);
  // 1,000 at 0.10, the rest at 0.01; then 12.5 % off, and 19 % tax.
  equal(amounts, [[null, "49.00"], [QUANTITY, "123456789102.34"]]);
  equal([invoice.sub_total, invoice.total_discount], ["123456789151.34", "15432098643.92"]);
  equal([invoice.total_tax, invoice.total], ["20524691196.41", "128549381703.83"]);
}

const api = await connectWithANewKey(setting("BASE_URL"));
await makeCatalog(api);
const contractRef = await makeContract(api);
const recorded = await reportEvents(api);
await changeEvents(api);
await checkInvoice(api, contractRef, recorded);
const unknown = { path: { contract_ref: randomUUID() } };
refused(await api.GET("/api/contracts/{contract_ref}", { params: unknown }), 404, "contract_not_found");
console.log(JSON.stringify({ event_ref: recorded.event_ref, document_number: recorded.related_document_numbers }));
