"""Fills a migrated, empty database with documents, contracts and events, and prints how long lists of them take, with their plans.

    list_check.py DATABASE DOCUMENTS

DATABASE is sqlite:///path or postgres://…, DOCUMENTS their number; every ten are a contract's. There are as many events, each on the
document of its number. The statements are those of crates/billing-storage/src/events_query.rs, and of document_lists.rs and lists.rs in
crates/billing-storage/src/ports.
"""

import sqlite3
import subprocess
import sys
import time

ORGANIZATION = "00000000000000000000000000000001"
DAY = 86_400_000_000
# Days since 1970 of 2026-01-01 and of today, which most documents are long before.
FIRST, TODAY = 20_454, 22_000

FILL = """
INSERT INTO organizations (organization_id, name, created_at) VALUES ({org}, 'org', {at:0});
INSERT INTO entities (organization_id, entity_ref, name, number_prefix, time_zone, grace_hours, payment, created_at, updated_at)
    VALUES ({org}, 'main', 'Main', 'UB', 'UTC', 0, {json}, {at:0}, {at:0}),
        ({org}, 'rare', 'Rare', 'RA', 'UTC', 0, {json}, {at:0}, {at:0});
INSERT INTO customers (customer_id, organization_id, customer_ref, name, email, tax_id, payment, created_at, updated_at)
    SELECT {id:n}, {org}, 'customer-' || n, 'Customer ' || n, 'pay' || n || '@example.com', 'DE' || n, {json}, {at:n}, {at:n}
    FROM {series:customers} AS s;
INSERT INTO contracts (contract_id, customer_id, organization_id, number, po_number, version, terms_id, created_at, updated_at, cancelled_at,
        documents_opened, first_day, last_day, entity_ref)
    SELECT {id:n}, {id:(n - 1) / 5 + 1}, {org}, n, 'PO-' || n, 1, {id:n}, {at:n}, {at:n}, CASE WHEN n % 1000 = 0 THEN {at:n} END, 10,
        {day:20454 + n % 1000}, {day:20454 + n % 1000 + 365 + 1500 * (n % 2)}, 'main'
    FROM {series:contracts} AS s;
INSERT INTO documents (document_id, customer_id, organization_id, contract_id, entity_ref, kind, number_prefix, sequence, purpose, slot,
        number_in_contract, currency, period_start, period_end, is_partial_period, net_terms, payment, created_at, lifecycle,
        issue_date, due_date, total_minor, paid_minor, credits_minor, amount_due_minor, family_document_id, updated_at, po_number)
    SELECT {id:n}, {id:(c - 1) / 5 + 1}, {org}, {id:c}, CASE WHEN n % 5000 = 0 THEN 'rare' ELSE 'main' END,
        CASE WHEN n % 100 = 7 THEN 'CREDIT' ELSE 'INVOICE' END, 'UB', n,
        CASE WHEN n % 100 = 7 THEN 'ADJUSTMENT' ELSE 'REGULAR' END, CASE WHEN n % 100 = 7 THEN NULL ELSE 'PERIOD' END, n / c,
        CASE WHEN n % 1000 = 1 THEN 'USD' ELSE 'EUR' END, {day:d}, {day:d + 30}, {false}, '14', {json}, {at:n},
        CASE WHEN n % 200 = 3 THEN 'DRAFT' ELSE 'ISSUED' END,
        CASE WHEN n % 200 <> 3 THEN {day:d + 31} END, CASE WHEN n % 200 <> 3 THEN {day:d + 45} END,
        CASE WHEN n % 200 <> 3 THEN n % 100000 + 1 END,
        CASE WHEN n % 100 = 9 OR n % 200 = 3 THEN 0 ELSE n % 100000 + 1 END, 0,
        CASE WHEN n % 200 = 3 OR n % 100 = 7 THEN NULL WHEN n % 100 = 9 THEN n % 100000 + 1 ELSE 0 END, {id:n}, {at:n}, 'PO-' || c
    FROM (SELECT n, (n - 1) % {contracts} + 1 AS c, {first} + (n * 1461) / {documents} AS d FROM {series:documents} AS s) AS s;
INSERT INTO usage_events (event_id, customer_id, contract_id, product_no, usage_product_ref, service_start, service_end, document_id,
        occurred_at, service_date, quantity, recorded_at, revision, revised_at, revised_by, deleted)
    SELECT {id:n}, {id:(c - 1) / 5 + 1}, {id:c}, 1, CASE WHEN n % 5000 = 0 THEN 'rare' ELSE 'calls' END, {day:d}, {day:d + 30}, {id:n},
        {at:n - n % 7}, {day:d}, {decimal}, {at:n}, 1, {at:n}, 'api-key', {false}
    FROM (SELECT n, (n - 1) % {contracts} + 1 AS c, {first} + (n * 1461) / {documents} AS d FROM {series:documents} AS s) AS s;
"""

FROM = "FROM documents WHERE organization_id = {org}"
BY_CREATION = " ORDER BY created_at, document_id LIMIT 21"

# What is asked, the condition and the order.
LISTS = [
    ("the first page", "", BY_CREATION),
    ("a page after a cursor, in the middle", " AND (created_at, document_id) > ({at:half}, {id:half})", BY_CREATION),
    ("the same page by its page number", "", BY_CREATION + " OFFSET {half}"),
    ("by issue date", " AND issue_date IS NOT NULL", " ORDER BY issue_date, document_id LIMIT 21"),
    ("by issue date, the latest first, in the middle",
     " AND issue_date IS NOT NULL AND (issue_date, document_id) < ({day:21200}, {id:half})",
     " ORDER BY issue_date DESC, document_id DESC LIMIT 21"),
    ("by due date", " AND amount_due_minor IS NOT NULL", " ORDER BY due_date, document_id LIMIT 21"),
    ("the largest amounts", " AND total_minor IS NOT NULL",
     " ORDER BY currency DESC, total_minor DESC, document_id DESC LIMIT 21"),
    ("a document number", " AND number_prefix = 'UB' AND kind = 'INVOICE' AND sequence = {half}",
     " ORDER BY {few}created_at, {few}document_id LIMIT 21"),
    ("a purchase order number", " AND po_number = 'PO-77'", BY_CREATION),
    ("a customer", "+ AND customer_id = {id:77}", BY_CREATION),
    ("a contract", "+ AND customer_id = {id:16} AND contract_id = {id:77}", BY_CREATION),
    ("an entity with few documents", " AND entity_ref = 'rare'", BY_CREATION),
    ("drafts", " AND lifecycle = 'DRAFT' AND lifecycle <> 'ISSUED'", BY_CREATION),
    ("credits", " AND kind = 'CREDIT' AND kind <> 'INVOICE'", BY_CREATION),
    ("adjustments", " AND purpose = 'ADJUSTMENT' AND purpose <> 'REGULAR'", BY_CREATION),
    ("a rare currency", " AND currency = 'USD'", BY_CREATION),
    ("issued on a day", " AND issue_date >= {day:21000} AND issue_date <= {day:21000}", BY_CREATION),
    ("due in a week, by due date", " AND due_date >= {day:21000} AND due_date <= {day:21006} AND amount_due_minor IS NOT NULL",
     " ORDER BY due_date, document_id LIMIT 21"),
    ("recently changed", " AND updated_at >= {at:lately}", BY_CREATION),
    ("periods that begin on a day", " AND period_start >= {day:21000} AND period_start <= {day:21000}", BY_CREATION),
    ("with an amount due, by due date", " AND amount_due_minor > 0",
     " ORDER BY due_date, document_id LIMIT 21"),
    ("overdue", " AND amount_due_minor > 0 AND due_date < {day:20600} AND due_date < {day:20600}", BY_CREATION),
    ("issued invoices without payments and credits",
     " AND kind = 'INVOICE' AND lifecycle = 'ISSUED' AND paid_minor + credits_minor = 0 AND amount_due_minor > 0", BY_CREATION),
]


def events(range_of_time, product, first, direction=""):
    """The statement for a page of events by time. On SQLite it searches the first of all by the index."""
    order = f"e.occurred_at{direction}, e.event_id{direction} LIMIT {first}"
    return {
        "sqlite": "SELECT e.event_id, e.customer_id FROM (SELECT event_id, customer_id, occurred_at FROM (SELECT event_id, customer_id,"
        f" occurred_at{', usage_product_ref' if product else ''} FROM usage_events WHERE NOT deleted{range_of_time}"
        f" ORDER BY occurred_at{direction}, event_id{direction} LIMIT {4 * first + 1000}) f{product.replace(' AND ', ' WHERE ', 1)}) e"
        " CROSS JOIN customers c ON c.customer_id = e.customer_id"
        f" WHERE c.organization_id = {{org}} ORDER BY {order}",
        "postgres": "SELECT e.event_id, e.customer_id FROM (SELECT * FROM usage_events WHERE NOT deleted"
        f"{product}{range_of_time}) e JOIN customers c ON c.customer_id = e.customer_id WHERE c.organization_id = {{org}} ORDER BY {order}",
    }


SINCE = " AND occurred_at >= {at:half}"
EVENTS = [
    ("1,000 events by time", events("", "", 1000)),
    ("1,000 events by time, the latest first", events("", "", 1000, " DESC")),
    ("20 events by time since an instant in the middle", events(SINCE, "", 20)),
    ("20 events of a frequent usage product by time", events("", " AND usage_product_ref = 'calls'", 20)),
    ("count of events since an instant near the end", {
        database: "SELECT count(*) FROM (SELECT * FROM usage_events WHERE NOT deleted AND occurred_at >= {at:lately}) e"
        f" {join} customers c ON c.customer_id = e.customer_id WHERE c.organization_id = {{org}}"
        for database, join in [("sqlite", "CROSS JOIN"), ("postgres", "JOIN")]
    }),
]
CONTRACTS = "FROM contracts WHERE organization_id = {org}"
OTHERS = [
    ("contracts by number", "SELECT contract_id " + CONTRACTS + " AND number = 77 ORDER BY {few}created_at, contract_id LIMIT 20"),
    ("contracts by purchase order number",
     "SELECT contract_id " + CONTRACTS + " AND po_number = 'PO-77' ORDER BY created_at, contract_id LIMIT 20"),
    ("canceled contracts",
     "SELECT contract_id " + CONTRACTS + " AND cancelled_at IS NOT NULL AND (last_day IS NULL OR last_day < {day:22000})"
     " ORDER BY created_at, contract_id LIMIT 20"),
    ("contracts that end before a day",
     "SELECT contract_id " + CONTRACTS + " AND last_day < {day:20822} ORDER BY created_at, contract_id LIMIT 20"),
    ("customers by name",
     "SELECT customer_id FROM customers WHERE organization_id = {org} AND lower(name{c}) >= 'customer 77' AND lower(name{c}) <"
     " 'customer 78' ORDER BY {few}created_at, customer_ref LIMIT 20"),
    ("customers by e-mail",
     "SELECT customer_id FROM customers WHERE organization_id = {org} AND email IS NOT NULL AND lower(email{c}) ="
     " 'pay77@example.com' ORDER BY {few}created_at, customer_ref LIMIT 20"),
    ("an event's key, of all customers",
     "SELECT f.event_id FROM (SELECT (SELECT k.event_id FROM usage_event_keys k WHERE k.customer_id = c.customer_id"
     " AND k.key_digest = {id:1}) AS event_id FROM customers c WHERE c.organization_id = {org}) f"
     " WHERE f.event_id IS NOT NULL LIMIT 20"),
    ("count and totals of all",
     "SELECT currency, count(*), sum(CASE WHEN lifecycle = 'VOID' THEN 0 WHEN kind = 'CREDIT' THEN -total_minor ELSE total_minor END),"
     " sum(amount_due_minor) " + FROM + " GROUP BY currency"),
    ("count and totals of overdue documents",
     "SELECT currency, count(*), sum(total_minor), sum(amount_due_minor) " + FROM +
     " AND amount_due_minor > 0 AND due_date < {day:20600} GROUP BY currency"),
]


class Dialect:
    """The same values as a database of one kind writes them."""

    def __init__(self, is_sqlite, documents):
        self.is_sqlite, self.documents = is_sqlite, documents
        self.contracts = max(documents // 10, 1)
        self.customers = max(self.contracts // 5, 1)
        self.named = {"half": documents // 2, "lately": documents - 100}

    def id(self, n):
        text = f"printf('%032x', {n})" if self.is_sqlite else f"lpad(to_hex(({n})::bigint), 32, '0')"
        return f"unhex({text})" if self.is_sqlite else f"({text})::uuid"

    def at(self, n):
        return f"(1767225600000000 + ({n}) * 1000000)" if self.is_sqlite else f"(timestamptz '2026-01-01Z' + ({n}) * interval '1 s')"

    def day(self, n):
        return f"({n})" if self.is_sqlite else f"(date '1970-01-01' + ({n})::int)"

    def series(self, name):
        last = getattr(self, name)
        if self.is_sqlite:
            return f"(WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < {last}) SELECT n FROM c)"
        return f"(SELECT n FROM generate_series(1, {last}) n)"

    def write(self, sql):
        json = """'{"bank_transfer":null,"online":null,"crypto":null}'"""
        words = {
            "org": f"x'{ORGANIZATION}'" if self.is_sqlite else f"'{ORGANIZATION}'::uuid",
            "json": json, "false": "0" if self.is_sqlite else "FALSE",
            "decimal": "'1.25'" if self.is_sqlite else "1.25", "first": str(FIRST), "half": str(self.named["half"]),
            # SQLite doesn't know that few rows pass, and is kept from walking through all in their order.
            "few": "+" if self.is_sqlite else "",
            "documents": str(self.documents), "contracts": str(self.contracts), "c": "" if self.is_sqlite else ' COLLATE "C"',
        }
        out, rest = "", sql
        while "{" in rest:
            before, rest = rest.split("{", 1)
            inside, rest = rest.split("}", 1)
            kind, colon, value = inside.partition(":")
            value = str(self.named.get(value, value))
            out += before + (getattr(self, kind)(value) if colon else words[kind])
        return out + rest

    def list(self, condition, order):
        source = FROM
        if condition.startswith("+"):
            # As the service does: SQLite would walk through the organization's.
            source, condition = FROM.replace("organization_id", "+organization_id" if self.is_sqlite else "organization_id"), condition[1:]
        return self.write(f"SELECT document_id {source}{condition}{order}")


class Sqlite:
    def __init__(self, url):
        self.link = sqlite3.connect(url.removeprefix("sqlite://"))
        if sqlite3.sqlite_version_info < (3, 41):
            self.link.create_function("unhex", 1, bytes.fromhex, deterministic=True)

    def execute(self, sql):
        self.link.executescript(sql)

    def time(self, sql):
        began = time.perf_counter()
        self.link.execute(sql).fetchall()
        return time.perf_counter() - began

    def plan(self, sql):
        return "; ".join(row[3] for row in self.link.execute("EXPLAIN QUERY PLAN " + sql))


class Postgres:
    def __init__(self, url):
        self.url = url

    def psql(self, sql):
        arguments = ["psql", "--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", self.url]
        return subprocess.run(arguments, input=sql, check=True, capture_output=True, text=True).stdout

    def execute(self, sql):
        self.psql(sql + "\nVACUUM ANALYZE;")

    def time(self, sql):
        lines = self.psql(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}").splitlines()
        return float(next(line for line in lines if line.startswith("Execution Time")).split()[2]) / 1000

    def plan(self, sql):
        lines = [line.strip() for line in self.psql(f"EXPLAIN (COSTS OFF) {sql}").splitlines()]
        return "; ".join(line.removeprefix("->").strip() for line in lines if "Scan" in line or "Sort" in line)


def main(url, documents):
    is_sqlite = url.startswith("sqlite:")
    database, dialect = (Sqlite if is_sqlite else Postgres)(url), Dialect(is_sqlite, documents)
    database.execute(dialect.write(FILL))
    asked = [(name, dialect.list(condition, order)) for name, condition, order in LISTS]
    asked += [(name, dialect.write(sql["sqlite" if is_sqlite else "postgres"])) for name, sql in EVENTS]
    asked += [(name, dialect.write(sql)) for name, sql in OTHERS]
    for name, sql in asked:
        database.time(sql)
        took = sorted(database.time(sql) for _ in range(3))[1]
        print(f"| {name} | {took * 1000:.2f} ms | {database.plan(sql)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
