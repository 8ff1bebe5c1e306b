"""Reads usage reports with Python's own readers and openpyxl, and compares every row with what it should be.

    reports.py EXPECTED CSV JSON XLSX

EXPECTED has one event per line, as GET /api/usage/event/<ref> answers it, in the report's order.
"""

import csv
import json
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from itertools import zip_longest

import openpyxl
from openpyxl.utils.escape import unescape

FIXED = [
    "event_ref",
    "timestamp",
    "customer_ref",
    "customer_name",
    "usage_product_ref",
    "usage_product_name",
    "quantity",
    "document_numbers",
]
PREFIX = "additional_report_data."
# What a spreadsheet takes for the beginning of a formula, or what marks that it isn't one.
GUARDED = tuple("=+-@\t\r\n＝＋－＠'")
# More than this is read line by line.
WHOLE_BYTES = 64 << 20


def loads(text):
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def heading(key):
    return PREFIX + key if key in FIXED or key.startswith(PREFIX) else key


def row_of(event):
    """An event as the values of its columns."""
    row = {name: event[name] for name in FIXED if name != "document_numbers"}
    row["document_numbers"] = event["related_document_numbers"]
    row.update((heading(key), value) for key, value in (event.get("additional_report_data") or {}).items())
    return row


def headings_of(keys):
    return FIXED + [heading(key) for key in sorted(keys)]


def is_same_number(text, number):
    """Digit by digit, the zeros at the end included."""
    try:
        return Decimal(text).as_tuple() == number.as_tuple()
    except InvalidOperation:
        return False


def unguarded(cell):
    return ";".join(part[1:] if part.startswith("'") else part for part in cell.split(";"))


def is_csv_cell(cell, value):
    if value is None:
        return cell == ""
    if isinstance(value, bool):
        return cell == ("true" if value else "false")
    if isinstance(value, Decimal):
        return is_same_number(cell, value)
    return unguarded(cell) == value and (not cell.startswith(GUARDED) or cell.startswith("'"))


def is_sheet_cell(cell, value):
    if value is None or value == "":
        return cell is None
    if isinstance(value, bool) or isinstance(cell, bool):
        return cell is value
    if isinstance(value, Decimal):
        if isinstance(cell, str):
            return is_same_number(cell, value)
        return Decimal(repr(cell)) == value
    if isinstance(cell, datetime):
        # The number of a date cell has milliseconds.
        return abs(cell.replace(tzinfo=timezone.utc) - datetime.fromisoformat(value)) <= timedelta(milliseconds=1)
    return isinstance(cell, str) and unescape(cell) == value


def compare(rows, expected, headings, is_cell, what):
    """Compares rows of cells with expected events; answers how many there are."""
    count = 0
    for count, (cells, event) in enumerate(zip_longest(rows, expected), 1):
        assert cells is not None and event is not None, f"{what}: row {count} has no counterpart: {cells} {event}"
        row = row_of(event)
        assert len(cells) == len(headings), f"{what}: row {count} has {len(cells)} cells, not {len(headings)}"
        for cell, name in zip(cells, headings):
            assert is_cell(cell, row.get(name)), f"{what}: row {count}, {name}: {cell!r} is not {row.get(name)!r}"
    return count


def compare_csv(path, expected, headings):
    with open(path, encoding="utf-8", newline="") as file:
        text = csv.reader(file, strict=True)
        found = next(text)
        assert [unguarded(name) for name in found] == headings, f"CSV headings: {found}"
        assert not any(name.startswith(GUARDED) and not name.startswith("'") for name in found), f"CSV headings: {found}"
        count = compare(text, expected, headings, is_csv_cell, "CSV")
    with open(path, "rb") as file:
        assert all(line.endswith(b"\r\n") for line in file), "a line doesn't end with CR LF"
    return count


def compare_json(path, expected, headings):
    def values():
        with open(path, encoding="utf-8") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if size <= WHOLE_BYTES:
                yield from loads(file.read())
                return
            assert file.readline() == "[\n"
            for line in file:
                if line != "]\n":
                    yield loads(line.rstrip("\n").removesuffix(","))

    count = 0
    for count, (found, event) in enumerate(zip_longest(values(), expected), 1):
        assert found is not None and event is not None, f"JSON: element {count} has no counterpart"
        row = row_of(event)
        assert list(found) == [name for name in headings if name in row], f"JSON: element {count}: {list(found)}"
        for name, value in row.items():
            same = value.as_tuple() == found[name].as_tuple() if isinstance(value, Decimal) else value == found[name]
            assert same, f"JSON: element {count}, {name}: {found[name]!r} is not {value!r}"
    return count


def compare_xlsx(path, expected, headings):
    book = openpyxl.load_workbook(path, read_only=True)

    def rows():
        for number, sheet in enumerate(book.worksheets, 1):
            assert sheet.title == ("Usage" if number == 1 else f"Usage {number}"), sheet.title
            sheet.reset_dimensions()
            of_sheet = sheet.iter_rows(values_only=True)
            assert [unescape(name) for name in next(of_sheet)] == headings, f"headings of sheet {number}"
            for cells in of_sheet:
                yield list(cells) + [None] * (len(headings) - len(cells))

    count = compare(rows(), expected, headings, is_sheet_cell, "XLSX")
    for sheet in book.worksheets:
        sheet.reset_dimensions()
        first = next(sheet.iter_rows(min_row=2, max_row=2), ())
        assert all(cell.data_type != "f" for cell in first), "a formula"
    return count


def main():
    expected_path, *paths = sys.argv[1:]

    def expected():
        with open(expected_path, encoding="utf-8") as file:
            for line in file:
                yield loads(line)

    keys = {key for event in expected() for key in event.get("additional_report_data") or {}}
    headings = headings_of(keys)
    comparisons = [compare_csv, compare_json, compare_xlsx]
    counts = [compare(path, expected(), headings) for compare, path in zip(comparisons, paths, strict=True)]
    assert len(set(counts)) == 1, counts
    print(counts[0])


if __name__ == "__main__":
    main()
