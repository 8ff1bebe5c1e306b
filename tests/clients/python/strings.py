"""Reads an event and a document with decimals as strings, and prints the event's quantity and the document's total.

Takes BASE_URL, TOKEN, EVENT_REF and DOCUMENT_REF from the environment.
"""

import os

from usage_billing_client import AuthenticatedClient
from usage_billing_client.api.documents import get_document
from usage_billing_client.api.usage import get_event
from usage_billing_client.models import Document, Event, GetDocumentPrefer, GetEventPrefer

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["TOKEN"])
event = get_event.sync(os.environ["EVENT_REF"], client=client, prefer=GetEventPrefer.NUMBERSSTRING)
document = get_document.sync(os.environ["DOCUMENT_REF"], client=client, prefer=GetDocumentPrefer.NUMBERSSTRING)
assert isinstance(event, Event) and isinstance(document, Document), (event, document)
assert isinstance(event.quantity, str) and isinstance(document.total, str)
print(event.quantity, document.total)
