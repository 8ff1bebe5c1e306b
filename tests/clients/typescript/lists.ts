// Lists are arrays in the types.

import type { paths } from "./schema.js";

type Listed<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer T } } } };
} ? T : never;

export const contract = (listed: Listed<"/api/contracts/filter">): string[] => listed.map((contract) => contract.contract_ref);
export const total = (listed: Listed<"/api/documents/filter">): number[] => listed.map((document) => document.total);
