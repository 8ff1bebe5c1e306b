// Reads an event and a document with decimals as strings, and prints the event's quantity and the document's total.
// Takes BASE_URL, TOKEN, EVENT_REF and DOCUMENT_REF from the environment.

import { ok } from "node:assert/strict";
import { env } from "node:process";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const api = createClient<paths>({ baseUrl: env.BASE_URL ?? "", headers: { Authorization: `Bearer ${env.TOKEN}` } });
const header = { Prefer: "numbers=string" } as const;
const event = await api.GET("/api/usage/event/{event_ref}", {
  params: { path: { event_ref: env.EVENT_REF ?? "" }, header },
});
const document = await api.GET("/api/documents/{document_ref}", {
  params: { path: { document_ref: env.DOCUMENT_REF ?? "" }, header },
});
ok(event.data && document.data, JSON.stringify([event.error, document.error]));
const [quantity, total]: string[] = [event.data.quantity, document.data.total];
console.log(`${quantity} ${total}`);
