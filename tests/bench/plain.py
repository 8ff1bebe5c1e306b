"""What a team would write without a billing service: an event is matched, stored and put on its invoice in one transaction.
No log-in, no keys, no versions, no tiers, no tax; `plain.sql` has its tables. It takes what /api/usage/event takes."""

import os
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal

import asyncpg
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

CONNECTIONS = 16

MATCH = """
    SELECT c.contract_id, c.unit_price, i.invoice_id, i.number
    FROM contracts c JOIN invoices i USING (contract_id)
    WHERE c.customer_ref = $1 AND c.usage_product_ref = $2 AND i.period_start <= $3 AND $3 < i.period_end
"""
INSERT = "INSERT INTO events (invoice_id, occurred_at, quantity) VALUES ($1, $2, $3) RETURNING event_id"
LINE = "UPDATE lines SET quantity = quantity + $2, amount = round((quantity + $2) * $3, 2) WHERE invoice_id = $1"
INVOICE = "UPDATE invoices SET total = (SELECT sum(amount) FROM lines WHERE invoice_id = $1) WHERE invoice_id = $1"


class Event(BaseModel):
    timestamp: datetime
    customer_ref: str
    usage_product_ref: str
    quantity: Decimal


@asynccontextmanager
async def connected(app):
    app.state.pool = await asyncpg.create_pool(os.environ["PLAIN_DATABASE_URL"], min_size=CONNECTIONS, max_size=CONNECTIONS)
    yield
    await app.state.pool.close()


app = FastAPI(lifespan=connected)


@app.post("/api/usage/event")
async def record(event: Event):
    async with app.state.pool.acquire() as connection, connection.transaction():
        found = await connection.fetchrow(MATCH, event.customer_ref, event.usage_product_ref, event.timestamp)
        if found is None:
            raise HTTPException(422, "no contract")
        event_id = await connection.fetchval(INSERT, found["invoice_id"], event.timestamp, event.quantity)
        await connection.execute(LINE, found["invoice_id"], event.quantity, found["unit_price"])
        await connection.execute(INVOICE, found["invoice_id"])
    documents = {"related_document_refs": [found["invoice_id"]], "related_document_numbers": [found["number"]]}
    return {"event_ref": event_id, **documents}


@app.get("/health/ready")
async def ready():
    return {}
