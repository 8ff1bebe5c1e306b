// Verifies received webhooks with the library of Standard Webhooks. The argument is a file with the requests.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

let verified = 0;
for (const hook of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  for (const secret of hook.secrets) {
    assert.deepEqual(new Webhook(secret).verify(hook.body, hook.headers), JSON.parse(hook.body));
    verified += 1;
  }
  assert.throws(() => new Webhook(hook.other).verify(hook.body, hook.headers));
  assert.throws(() => new Webhook(hook.secrets[0]).verify(hook.body + " ", hook.headers));
}
console.log(verified);
