"""Reads an event and a document with the models of datamodel-code-generator, and prints the event's quantity and the document's total.

Takes BASE_URL, TOKEN, EVENT_REF and DOCUMENT_REF from the environment.
"""

import os
import urllib.request

from models import Document, Event


def read(kind, path):
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Prefer": "numbers=string"}
    with urllib.request.urlopen(urllib.request.Request(os.environ["BASE_URL"] + path, headers=headers)) as response:
        return kind.model_validate_json(response.read())


event = read(Event, f"/api/usage/event/{os.environ['EVENT_REF']}")
document = read(Document, f"/api/documents/{os.environ['DOCUMENT_REF']}")
print(event.quantity.root, document.total.root)
