"""Verifies received webhooks with the library of Standard Webhooks. The argument is a file with the requests."""

import json
import sys

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

verified = 0
for hook in json.load(open(sys.argv[1], encoding="utf-8")):
    for secret in hook["secrets"]:
        assert Webhook(secret).verify(hook["body"], hook["headers"]) == json.loads(hook["body"])
        verified += 1
    for secret, body in [(hook["other"], hook["body"]), (hook["secrets"][0], hook["body"] + " ")]:
        try:
            Webhook(secret).verify(body, hook["headers"])
        except WebhookVerificationError:
            continue
        raise SystemExit(f"{hook} is verified although it was changed")
print(verified)
