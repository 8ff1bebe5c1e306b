"""Makes the documents of docs/paper: one for each way in which a document explains itself.

    papers.py BINARY FOLDER

Starts the server with an empty SQLite database and a clock that this script sets, so that the documents are the same on each
run. Makes the documents over HTTP, and writes a picture of the first page of each PDF file to FOLDER, and a list of them. With
the environment variable PDF, it also writes the files to the folder that PDF names. Uses the programs cc and pdftoppm.
"""

import base64
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
EMAIL = "admin@example.com"
PASSWORD = "a pass phrase for pictures only"
DOTS_PER_INCH = 100
COLORS = 32
START_SECONDS = 60

LOGO = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 64">
<rect width="64" height="64" rx="14" fill="#0b6e5b"/>
<path d="M16 44 L32 16 L48 44 Z" fill="#ffffff"/>
<circle cx="32" cy="36" r="5" fill="#0b6e5b"/>
<path d="M84 18 h8 v28 h22 v6 h-30 z M126 18 h8 v20 q0 8 8 8 t8 -8 v-20 h8 v20 q0 15 -16 15 t-16 -15 z" fill="#0b6e5b"/>
</svg>"""


class Clock:
    """The wall clock of the server, by the preloaded library tests/src/clock.c."""

    def __init__(self, directory):
        self.library = directory / "clock.so"
        self.file = directory / "clock"
        source = ROOT / "tests/src/clock.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, source, "-ldl"], check=True)
        self.file.write_bytes(bytes(8))

    def environment(self):
        return {"LD_PRELOAD": str(self.library), "TEST_CLOCK": str(self.file)}

    def set(self, instant):
        seconds = int(datetime.fromisoformat(instant).timestamp() - time.time())
        # The file must never become shorter, because the server has mapped it.
        with self.file.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


class Client:
    """A client of the server that fails on each response other than a success."""

    def __init__(self, port, clock):
        self.port = port
        self.clock = clock
        self.key = None
        self.token = None

    def send(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if response.status >= 300:
            sys.exit(f"{method} {path} with {body}: {response.status} {content.decode()}")
        return content, response

    def get(self, path):
        return json.loads(self.send("GET", path)[0])

    def post(self, path, body):
        content = self.send("POST", path, body)[0]
        return json.loads(content) if content else None

    def at(self, instant):
        """Sets the clock, and logs in again because tokens expire."""
        self.clock.set(instant)
        self.token = None
        if not self.key:
            cookie = self.send("POST", "/auth/login", {"email": EMAIL, "password": PASSWORD})[1].getheader("Set-Cookie")
            content, _ = self.send("POST", "/auth/keys/generate", headers={"Cookie": cookie.split(";")[0]})
            key = json.loads(content)
            self.key = {"api_key": key["api_key"], "password": key["password"]}
        self.token = self.post("/auth/login", self.key)


@contextmanager
def serving(binary):
    """Starts the server with an empty database. Returns its client."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        clock = Clock(directory)
        clock.set("2026-10-01T08:00:00+00:00")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("USAGE_BILLING_")}
        environment |= clock.environment() | {
            "USAGE_BILLING_DATABASE_URL": f"sqlite://{directory}/billing.sqlite3",
            "USAGE_BILLING_LISTEN": f"127.0.0.1:{port}",
            "USAGE_BILLING_RUN_EVERY_SECONDS": "0",
            "USAGE_BILLING_PASSWORD_COST": "10",
            "USAGE_BILLING_ADMIN_EMAIL": EMAIL,
            "USAGE_BILLING_ADMIN_PASSWORD": PASSWORD,
        }
        log = directory / "log"
        with log.open("wb") as output:
            server = subprocess.Popen([binary, "serve"], env=environment, cwd=directory, stdout=output, stderr=output)
        try:
            wait_until_ready(server, port, log)
            yield Client(port, clock)
        finally:
            server.terminate()
            server.wait()


def wait_until_ready(server, port, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"the server does not start:\n{log.read_text()}")


def address(line1, zip_code, city, country_code, **more):
    return {"line1": line1, "zip_code": zip_code, "city": city, "country_code": country_code, **more}


def sellers(client):
    account = {"account_name": "Northwind Cloud GmbH", "iban": "DE89370400440532013000", "bic": "COBADEFFXXX",
               "bank_name": "Commerzbank"}
    client.post("/api/bank_accounts/", {"billing_account_id": "berlin", **account})
    client.post("/api/bank_accounts/", {"billing_account_id": "albany", "account_name": "Northwind Cloud Inc.",
                                        "account_number": "000123456789", "routing_number": "021000021",
                                        "bank_name": "JPMorgan Chase"})
    client.post("/api/bank_accounts/", {"billing_account_id": "tokyo", "account_name": "ノースウインド株式会社",
                                        "account_number": "普通 1234567", "bank_name": "みずほ銀行 丸の内支店"})
    contact = {"name": "Accounts receivable", "phone": "+49 30 901820", "email": "billing@northwind.example"}
    client.post("/api/entities/", {
        "entity_ref": "berlin", "name": "Northwind Cloud", "legal_name": "Northwind Cloud GmbH", "number_prefix": "NW",
        "default": True, "vat_id": "DE123456789", "registration": {"value": "HRB 12345 B"}, "contact": contact,
        "address": address("Invalidenstraße 44", "10115", "Berlin", "DE"), "net_terms": 30,
        "electronic_address": {"scheme": "EM", "value": "billing@northwind.example"},
        "billing_bank_transfer_details": {"billing_account_id": "berlin"},
    })
    client.post("/api/entities/", {
        "entity_ref": "lumen", "name": "Lumen", "legal_name": "Lumen Verlag GmbH", "number_prefix": "LU",
        "vat_id": "DE987654321", "address": address("Speicherstraße 3", "20457", "Hamburg", "DE"), "net_terms": 14,
        "billing_bank_transfer_details": {"billing_account_id": "berlin"}, "language": "de",
        "logo": base64.b64encode(LOGO.encode()).decode(), "accent_color": "#0b6e5b",
        "footer": "Lumen Verlag GmbH · Sitz Hamburg · Amtsgericht Hamburg HRB 98765\n"
                  "Geschäftsführung: Dr. Ada Winter, Tom Sommer · lumen.example · +49 40 123456",
    })
    client.post("/api/entities/", {
        "entity_ref": "albany", "name": "Northwind Cloud Inc.", "legal_name": "Northwind Cloud Inc.", "number_prefix": "US",
        "tax_id": "12-3456789", "address": address("1 State Street", "12207", "Albany", "US", state="NY"), "net_terms": 30,
        "billing_bank_transfer_details": {"billing_account_id": "albany"},
    })
    client.post("/api/entities/", {
        "entity_ref": "tokyo", "name": "ノースウインド", "legal_name": "ノースウインド株式会社", "number_prefix": "JP",
        "tax_id": "T1234567890123", "address": address("丸の内1-1-1", "100-0005", "東京都千代田区", "JP"), "net_terms": 30,
        "billing_bank_transfer_details": {"billing_account_id": "tokyo"}, "language": "ja", "timezone": "Asia/Tokyo",
    })


def customers(client):
    def customer(ref, legal_name, billing_address, **more):
        body = {"customer_ref": ref, "name": legal_name, "legal_name": legal_name, "billing_address": billing_address, **more}
        client.post("/api/customers/", body)

    dublin = address("12 Harbour Road", "D02 XY45", "Dublin", "IE")
    customer("tiers", "Acme Analytics GmbH", address("Torstraße 1", "10119", "Berlin", "DE"), tax=19, vat_id="DE811111111",
             buyer_reference="Cost center 4711")
    customer("seats", "Birch & Co. KG", address("Am Wall 7", "28195", "Bremen", "DE"), tax=19)
    customer("packages", "Copper Mail GmbH", address("Ringstraße 20", "50667", "Köln", "DE"), tax=19)
    customer("prepaid", "Delta Maps GmbH", address("Hauptstraße 5", "80331", "München", "DE"), tax=19)
    customer("credit", "Harbor Freight Systems GmbH", address("Kaistraße 8", "40221", "Düsseldorf", "DE"), tax=19)
    customer("rates", "Buchhandlung Eselsohr e. K.", address("Marktplatz 2", "69117", "Heidelberg", "DE"), entity_ref="lumen")
    customer("french", "Atelier Beauchamp SAS", address("14 rue de la Paix", "75002", "Paris", "FR"), language="fr",
             vat_id="FR40303265045", tax=0, tax_category="AE", exemption_code="VATEX-EU-AE",
             exemption_reason="Reverse charge", e_invoice_profile="FACTUR_X",
             electronic_address={"scheme": "EM", "value": "compta@beauchamp.example"})
    customer("yen", "株式会社みどり電機", address("梅田2-4-9", "530-0001", "大阪市北区", "JP"), tax=10, entity_ref="tokyo")
    customer("arabic", "شركة الأفق للتجارة ذ.م.م", address("شارع الشيخ زايد 12", "00000", "دبي", "AE"), tax=0,
             tax_category="O", exemption_reason="Services outside the United States", entity_ref="albany")
    customer("lines", "Echo Hosting Ltd", dublin, tax=19)


def catalog(client):
    for ref, name, unit, unit_code in [
        ("calls", "API calls", "calls", "C62"), ("storage", "Storage", "GB", "E34"), ("emails", "E-mails", "e-mails", "C62"),
        ("sales", "Sales", None, "C62"), ("hours", "Conseil", "h", "HUR"), ("requests", "リクエスト", "件", "C62"),
        ("maps", "Map tiles", "tiles", "C62"), ("loans", "Ausleihen", "Ausleihen", "C62"),
    ]:
        client.post("/api/usage/products/", {"usage_product_ref": ref, "name": name, "unit": unit, "unit_code": unit_code})

    def pricing(ref, name, items, currency="EUR", **more):
        body = {"product_pricing_ref": ref, "name": name, "currency": currency, "line_items": items, **more}
        client.post("/api/pricings/", body)

    def fixed(ref, name, amount, **more):
        return {"line_item_id": ref, "name": name, "kind": "FIXED", "price": {"model": "FLAT", "amount": amount}, **more}

    def usage(ref, name, product, price, **more):
        return {"line_item_id": ref, "name": name, "kind": "USAGE", "usage_product_ref": product, "price": price, **more}

    graduated = {"model": "GRADUATED", "tiers": [
        {"up_to": 100000, "unit_price": "0.002"}, {"up_to": 1000000, "unit_price": "0.0012"}, {"unit_price": "0.0008"}]}
    volume = {"model": "VOLUME", "tiers": [
        {"up_to": 500, "unit_price": "0.09", "flat_amount": "5"}, {"unit_price": "0.07", "flat_amount": "10"}]}
    pricing("tiers", "Analytics platform", [
        fixed("fee", "Platform fee", "49"),
        usage("calls", "API calls", "calls", graduated, included_quantity=10000),
        usage("storage", "Storage", "storage", volume),
    ])
    pricing("seats", "Team plan", [fixed("seat", "Seats", "12"), fixed("support", "Support", "100")], minimum_fee="400")
    pricing("packages", "Mail delivery", [
        usage("emails", "E-mails", "emails", {"model": "PACKAGE", "package_size": 1000, "package_price": "35"},
              included_quantity=500),
        usage("sales", "Commission", "sales", {"model": "PERCENTAGE", "rate": "2.9", "fixed_amount": "0.30"}),
        usage("calls", "Tracking", "calls", {"model": "PER_UNIT", "unit_price": "0.001"}, minimum_amount="50"),
    ])
    pricing("prepaid", "Maps", [
        fixed("fee", "Platform fee", "49"),
        usage("calls", "API calls", "calls", {"model": "PER_UNIT", "unit_price": "0.0006"}, prepaid_quantity=500000,
              included_quantity=10000),
        usage("maps", "Map tiles", "maps", {"model": "PER_UNIT", "unit_price": "0.0015"}, prepaid_quantity=100000),
    ])
    pricing("year", "Yearly plan", [fixed("year", "Yearly fee", "2400")])
    pricing("month", "Monthly plan", [fixed("month", "Monthly fee", "420"), usage("calls", "API calls", "calls",
            {"model": "PER_UNIT", "unit_price": "0.0015"})])
    pricing("books", "Fachbücher", [fixed("book", "Jahrbuch Statistik", "39.90"), fixed("journal", "Zeitschrift", "18.50")])
    pricing("software", "Software", [fixed("licence", "Lizenz Bibliothek", "129"), usage(
        "loans", "Ausleihen", "loans", {"model": "PER_UNIT", "unit_price": "0.35"}, included_quantity=20)])
    pricing("french", "Accompagnement", [
        fixed("fee", "Abonnement", "250"),
        usage("hours", "Conseil", "hours", {"model": "PER_UNIT", "unit_price": "95.50"}, included_quantity=2),
    ])
    pricing("yen", "標準プラン", [
        fixed("fee", "基本料金", "4980"),
        usage("requests", "リクエスト", "requests", {"model": "GRADUATED", "tiers": [
            {"up_to": 10000, "unit_price": "0.35"}, {"unit_price": "0.215"}]}),
    ], currency="JPY")
    pricing("arabic", "منصة الأفق", [
        fixed("fee", "رسوم المنصة", "199"),
        usage("calls", "مكالمات API", "calls", {"model": "PER_UNIT", "unit_price": "0.0025"}),
    ], currency="USD")
    servers = [fixed(f"server-{n}", f"Server {n:03}, {('Dublin', 'Frankfurt', 'Paris', 'Madrid')[n % 4]}", f"{19 + n % 7}.{n % 10}0")
               for n in range(1, 201)]
    pricing("lines", "Dedicated servers", servers)


def contracts(client):
    refs = {}

    def contract(name, customer, products, **more):
        shared = {"billing_start_date": "2026-10-01", "billing_end_date": "2099-12-31"}
        body = {"customer_ref": customer, "products": [shared | product for product in products], **more}
        refs[name] = client.post("/api/contracts/", body)["contract_ref"]

    contract("tiers", "tiers", [{"product_pricing_ref": "tiers"}], po_number="PO-2026-118")
    steps = [{"from": "2026-10-08", "quantity": 5}, {"from": "2026-10-15", "quantity": 12}, {"from": "2026-10-24", "quantity": 9}]
    contract("seats", "seats", [{
        "product_pricing_ref": "seats", "billing_start_date": "2026-10-08",
        "line_items": [{"line_item_id": "seat", "quantities": steps}, {"line_item_id": "support"}],
    }])
    contract("packages", "packages", [{"product_pricing_ref": "packages"}])
    contract("prepaid", "prepaid", [{"product_pricing_ref": "prepaid", "payment_time": "BEFORE_USE"}])
    contract("year", "credit", [{"product_pricing_ref": "year", "payment_time": "BEFORE_USE",
                                 "billing_cycle": {"unit": "YEARLY", "cycle": 1}, "billing_end_date": "2027-09-30"}])
    contract("month", "credit", [{"product_pricing_ref": "month"}])
    contract("rates", "rates", [
        {"product_pricing_ref": "books", "tax": 7, "discount": 10, "line_items": [
            {"line_item_id": "book", "quantities": [{"from": "2026-10-01", "quantity": 12}]},
            {"line_item_id": "journal", "quantities": [{"from": "2026-10-01", "quantity": 3}]}]},
        {"product_pricing_ref": "software", "tax": 19, "discount": 5},
    ], po_number="B-2026/77")
    contract("french", "french", [{"product_pricing_ref": "french"}])
    contract("yen", "yen", [{"product_pricing_ref": "yen"}])
    contract("arabic", "arabic", [{"product_pricing_ref": "arabic"}])
    contract("lines", "lines", [{"product_pricing_ref": "lines"}])
    return refs


def use(client, customer, product, *quantities, month="2026-10"):
    for day, quantity in enumerate(quantities, 5):
        body = {"timestamp": f"{month}-{day:02}T10:00:00Z", "customer_ref": customer, "usage_product_ref": product,
                "quantity": quantity}
        client.post("/api/usage/event", body)


def documents(client):
    """Makes the documents. Returns the path of each file by its name."""
    client.at("2026-10-01T08:00:00+00:00")
    sellers(client)
    customers(client)
    catalog(client)
    refs = contracts(client)
    client.post("/api/billing/run", {})
    invoices = client.get("/api/documents/filter?customer_ref=credit&state=ISSUED&pageSize=100")
    for invoice in invoices:
        client.post(f"/api/documents/payments/{invoice['document_ref']}", {"amount": invoice["amount_due"]})

    client.at("2026-11-02T09:00:00+00:00")
    use(client, "tiers", "calls", 120000, 96834, 57)
    use(client, "tiers", "storage", "612.5")
    use(client, "packages", "emails", 1250, 1250)
    use(client, "packages", "sales", "149.99", "500.01", "350")
    use(client, "packages", "calls", 8000)
    use(client, "prepaid", "calls", 273677, 400000)
    use(client, "prepaid", "maps", 64000)
    use(client, "credit", "calls", 200000)
    use(client, "french", "hours", "3.5", "4.25")
    use(client, "yen", "requests", 8000, 15437)
    use(client, "arabic", "calls", 61234)
    use(client, "rates", "loans", 57)
    client.post("/api/billing/run", {})
    client.post(f"/api/contracts/cancel/{refs['year']}", {"last_day": "2026-10-31"})

    client.at("2026-12-02T09:00:00+00:00")
    use(client, "credit", "calls", 1100000, 400000, month="2026-11")
    client.post("/api/billing/run", {})
    client.at("2026-12-09T09:00:00+00:00")
    use(client, "rates", "loans", 31, month="2026-12")

    def path(customer, **wanted):
        found = client.get(f"/api/documents/filter?customer_ref={customer}&pageSize=100")
        found = [document for document in found if all(document[name] == value for name, value in wanted.items())]
        return f"/api/documents/{found[0]['document_ref']}/pdf"

    october = {"period_start": "2026-10-01", "kind": "INVOICE"}
    return {
        "tiers": ("Tiers with an included quantity", path("tiers", **october)),
        "seats": ("Seats that change twice in a partial period, and a minimum fee", path("seats", period_start="2026-10-08")),
        "packages": ("Packages, a percentage and a minimum", path("packages", **october)),
        "prepaid-debit": ("The debit of prepaid usage", path("prepaid", kind="DEBIT", period_start="2026-10-01")),
        "credit": ("A credit with its application", path("credit", kind="CREDIT")),
        "credit-applied": ("An invoice with an applied credit", path("credit", kind="INVOICE", period_start="2026-11-01")),
        "tax-rates": ("Two tax rates with discounts, in German, with logo, color and footer", path("rates", **october)),
        "reverse-charge": ("Reverse charge, in French", path("french", **october)),
        "yen": ("Yen, in Japanese", path("yen", **october)),
        "arabic": ("A customer with an Arabic name, on letter paper", path("arabic", **october)),
        "lines": ("200 lines, first page", path("lines", **october)),
        "draft": ("A draft", path("rates", state="DRAFT")),
        "statement": ("An account statement", "/api/customers/statement/credit?format=pdf"),
    }


# The documents whose pictures docs/paper has. Pictures of the others are beside their PDF files.
SHOWN = ("tiers", "seats", "prepaid-debit", "credit", "tax-rates", "yen", "statement")


def picture(pdf, target):
    """Writes a picture of the first page with few colors."""
    drawn = pdf.with_suffix("")
    subprocess.run(["pdftoppm", "-png", "-r", str(DOTS_PER_INCH), "-singlefile", pdf, drawn], check=True)
    with Image.open(drawn.with_suffix(".png")) as page:
        page.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(target, optimize=True)


def main():
    binary, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    rows = []
    with serving(binary) as client, tempfile.TemporaryDirectory() as temporary:
        files = Path(os.environ.get("PDF", temporary))
        for name, (title, path) in documents(client).items():
            pdf = files / f"{name}.pdf"
            pdf.write_bytes(client.send("GET", path)[0])
            picture(pdf, (folder if name in SHOWN else files) / f"{name}.png")
            if name in SHOWN:
                rows.append(f"| [{title}]({name}.png) |\n")
    head = "# Documents\n\n`scripts/papers` makes these documents, and the pictures of their first pages.\n\n| document |\n|---|\n"
    (folder / "README.md").write_text(head + "".join(rows))


if __name__ == "__main__":
    main()
