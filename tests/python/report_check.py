"""Loads events into a server, then streams reports of all of them in every format while it watches the server's memory.

    report_check.py load  BASE_URL API_KEY PASSWORD EVENTS DIRECTORY
    report_check.py fetch BASE_URL API_KEY PASSWORD PID DIRECTORY

`load` leaves what the reports should say in DIRECTORY/expected, `fetch` the reports themselves.
"""

import json
import sys
import threading
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

BATCH = 10_000
# Seconds between two looks at the memory.
LOOK_EVERY = 0.05
FORMATS = ["csv", "json", "xlsx"]


class Service:
    def __init__(self, base, api_key, password):
        self.base = base
        self.headers = {"Content-Type": "application/json", "Version": "V0"}
        self.headers["Authorization"] = "Bearer " + self.post("/auth/login", {"api_key": api_key, "password": password})

    def open(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(self.base + path, data, self.headers))

    def post(self, path, body):
        with self.open(path, body) as answer:
            return json.load(answer)


def make_catalog(service, first_day):
    service.post("/api/usage/products/", {"usage_product_ref": "report-calls", "name": "=Calls, all"})
    price = {"model": "PER_UNIT", "unit_price": "0.0001"}
    line = {"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "usage_product_ref": "report-calls", "price": price}
    pricing = {"product_pricing_ref": "report-plan", "name": "Plan", "currency": "EUR", "line_items": [line]}
    service.post("/api/pricings/", pricing)
    service.post("/api/customers/", {"customer_ref": "report-check", "name": 'Report "Check", Ltd'})
    last_day = first_day + timedelta(days=364)
    product = {"product_pricing_ref": "report-plan", "billing_start_date": f"{first_day:%F}", "billing_end_date": f"{last_day:%F}"}
    service.post("/api/contracts/", {"customer_ref": "report-check", "products": [product]})


def data_of(n):
    data = {"region": f"region {n % 7}", "tokens": n * 1_000_003, "cached": n % 2 == 0}
    if n % 3 == 0:
        data["=note"] = f'-{n}, "é"'
    return data


def load(service, events, directory):
    first_day = datetime.now(timezone.utc).date() - timedelta(days=40)
    make_catalog(service, first_day)
    start = datetime(first_day.year, first_day.month, first_day.day, tzinfo=timezone.utc)
    began, taken = time.monotonic(), []
    for first in range(0, events, BATCH):
        numbers = range(first, min(first + BATCH, events))
        # Neither in the order of time nor all at different times.
        times = [f"{start + timedelta(seconds=n * 7919 % (39 * 86_400)):%FT%TZ}" for n in numbers]
        quantities = [f"{n % 1000 + 1}.{n:07d}" for n in numbers]
        common = {"customer_ref": "report-check", "usage_product_ref": "report-calls"}
        body = [
            {"timestamp": at, "quantity": quantity, "additional_report_data": data_of(n), **common}
            for n, at, quantity in zip(numbers, times, quantities)
        ]
        for n, at, result in zip(numbers, times, service.post("/api/usage/event/batch", {"events": body})["results"]):
            taken.append((at, result["event_ref"], n, result["related_document_numbers"]))
    print(f"  loaded {events} events in {time.monotonic() - began:.0f} s")
    taken.sort()
    with open(directory / "expected", "w", encoding="utf-8") as file:
        for at, event_ref, n, documents in taken:
            event = {
                "event_ref": event_ref,
                "timestamp": at,
                "customer_ref": "report-check",
                "customer_name": 'Report "Check", Ltd',
                "usage_product_ref": "report-calls",
                "usage_product_name": "=Calls, all",
                "related_document_numbers": documents,
                "additional_report_data": data_of(n),
            }
            # The quantity with its own digits, which a float wouldn't keep.
            file.write(f'{{"quantity":{n % 1000 + 1}.{n:07d},{json.dumps(event)[1:]}\n')


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


def fetch(service, pid, directory):
    idle = resident_mb(pid)
    print(f"  idle: {idle:.0f} MB")
    highest = idle
    for word in FORMATS:
        peak, done = [idle], threading.Event()

        def watch():
            while not done.wait(LOOK_EVERY):
                peak.append(resident_mb(pid))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        began, first, size = time.monotonic(), None, 0
        with service.open(f"/api/usage/report?format={word}") as answer, open(directory / f"report.{word}", "wb") as file:
            while chunk := answer.read(1 << 16):
                first = first or time.monotonic() - began
                size += file.write(chunk)
        took = time.monotonic() - began
        done.set()
        watcher.join()
        highest = max(highest, *peak)
        print(f"  {word}: {size / 1e6:.0f} MB in {took:.1f} s, the first byte after {first:.1f} s, at most {max(peak) - idle:.0f} MB over idle")
    assert highest - idle <= 64, f"{highest - idle:.0f} MB over idle"


def main():
    what, base, api_key, password, number, directory = sys.argv[1:]
    service = Service(base, api_key, password)
    {"load": load, "fetch": fetch}[what](service, int(number), Path(directory))


if __name__ == "__main__":
    main()
