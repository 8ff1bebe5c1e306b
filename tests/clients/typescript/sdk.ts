// Reads an event and a document with the functions that @hey-api/openapi-ts generates, and prints the event's quantity and the
// document's total. Takes BASE_URL, TOKEN, EVENT_REF and DOCUMENT_REF from the environment.

import { ok } from "node:assert/strict";
import { env } from "node:process";
import { client } from "./sdk/client.gen.js";
import { type Document, getDocument, getEvent, listDocuments } from "./sdk/index.js";

client.setConfig({
  baseUrl: env.BASE_URL ?? "",
  auth: ({ scheme }) => (scheme === "bearer" ? env.TOKEN : undefined),
  headers: { Prefer: "numbers=string" },
});
const event = await getEvent({ path: { event_ref: env.EVENT_REF ?? "" } });
const document = await getDocument({ path: { document_ref: env.DOCUMENT_REF ?? "" } });
const listed = await listDocuments({ query: { pageSize: 20, pageNumber: 0 } });
ok(event.data && document.data && listed.data, JSON.stringify([event.error, document.error, listed.error]));
const documents: Document[] = listed.data;
const total: string | undefined = documents[0]?.total;
ok(total === document.data.total);
console.log(`${event.data.quantity} ${total}`);
