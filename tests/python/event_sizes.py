"""Bytes on disk per usage event, without and with an idempotency key. scripts/event-sizes calls it."""

import datetime
import http.client
import json
import os
import secrets
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid

BATCH = 1000


def exchange(port, path, body, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Version": "V0", **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, f"{path}: {answer.status} {text[:300]}"
    return text, answer.getheader("Set-Cookie")


def send(port, path, body, token=None):
    return exchange(port, path, body, {"Authorization": f"Bearer {token}"} if token else {})[0]


def new_token(port, password):
    """Creates an API key as the first administrator, and returns a bearer token of the key."""
    _, cookie = exchange(port, "/auth/login", {"email": "admin@example.com", "password": password}, {})
    key, _ = exchange(port, "/auth/keys/generate", {}, {"Cookie": cookie.split(";")[0]})
    credentials = {name: value for name, value in json.loads(key).items() if name in ("api_key", "password")}
    return json.loads(send(port, "/auth/login", credentials))


def load(url, events, with_keys, directory):
    """Serves a new database until the events are in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = os.path.join(directory, "out")
    command = [os.environ["BINARY"], "serve", "--sample", "--listen", f"127.0.0.1:{port}", "--database-url", url]
    password = secrets.token_urlsafe(24)
    environment = {**os.environ, "USAGE_BILLING_ADMIN_PASSWORD": password}
    with open(out, "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.DEVNULL, env=environment)
    try:
        for _ in range(300):
            with open(out) as log:
                said = log.read()
            if "is ready at" in said:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    pass
            time.sleep(0.1)
        token = new_token(port, password)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {"timestamp": now, "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 1}
        for _ in range(0, events, BATCH):
            keyed = [{**event, "idempotency_key": str(uuid.uuid4())} if with_keys else event for _ in range(BATCH)]
            answer = json.loads(send(port, "/api/usage/event/batch", {"events": keyed}, token))
            assert len(answer.get("results", answer)) == BATCH
    finally:
        server.terminate()
        server.wait()


def on_sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = connection.execute("SELECT name, sum(pgsize) FROM dbstat WHERE name LIKE 'usage_event%' GROUP BY name")
        return dict(rows.fetchall())


def on_postgres(url):
    sql = (
        "SELECT c.relname, pg_relation_size(c.oid) FROM pg_class c WHERE c.relname LIKE 'usage_event%' AND c.relkind IN ('r', 'i')"
    )
    said = subprocess.run([os.environ["PSQL"], "-XAt", url, "-c", sql], check=True, capture_output=True, text=True).stdout
    return {name: int(size) for name, size in (line.split("|") for line in said.splitlines())}


def main():
    events = int(sys.argv[1])
    admin = os.environ["USAGE_BILLING_TEST_POSTGRES_URL"]
    for with_keys in (False, True):
        for database in ("SQLite", "PostgreSQL"):
            with tempfile.TemporaryDirectory() as directory:
                if database == "SQLite":
                    path = os.path.join(directory, "usage.sqlite3")
                    load(f"sqlite://{path}", events, with_keys, directory)
                    sizes = on_sqlite(path)
                else:
                    name = f"sizes_{int(with_keys)}"
                    made = [os.environ["PSQL"], "-Xq", admin, "-c", f"CREATE DATABASE {name}"]
                    subprocess.run(made, check=True)
                    url = f"{admin.rsplit('/', 1)[0]}/{name}"
                    load(url, events, with_keys, directory)
                    sizes = on_postgres(url)
            each = {name: size / events for name, size in sorted(sizes.items()) if size / events >= 1}
            shown = ", ".join(f"{name} {size:.0f}" for name, size in each.items())
            print(f"{database}, {'with' if with_keys else 'without'} keys: {sum(each.values()):.0f} bytes an event ({shown})")


main()
