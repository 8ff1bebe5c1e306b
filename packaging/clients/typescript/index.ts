import createFetchClient, { type ClientOptions, type Client as FetchClient } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";
export type Schemas = components["schemas"];
export type Client = FetchClient<paths>;

/** Returns a client that receives decimals as strings, with all their digits. The options are those of `openapi-fetch`. */
export function createClient(options: ClientOptions): Client {
  return withHeaders(options, { Prefer: "numbers=string" });
}

/** Returns a client that also sends an API key and its password with each request. */
export function connect(baseUrl: string, apiKey: string, password: string, options: ClientOptions = {}): Client {
  const Authorization = `Basic ${btoa(`${apiKey}:${password}`)}`;
  return withHeaders({ ...options, baseUrl }, { Prefer: "numbers=string", Authorization });
}

function withHeaders(options: ClientOptions, headers: Record<string, string>): Client {
  const client = createFetchClient<paths>(options);
  client.use({
    onRequest({ request }) {
      for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    },
  });
  return client;
}
