"""Checks the bill of materials in wheels: CycloneDX by its own schema, and a licence for each part."""

import json
import sys
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/sboms/abcgbm.cdx.json"))
        text = wheel.read(name).decode()
        licences = {
            n.rsplit("/", 1)[-1] for n in wheel.namelist() if ".dist-info/licenses/" in n
        } - {""}
    if (error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        sys.exit(f"{path}: {error}")
    parts = {part["name"]: part["version"] for part in json.loads(text)["components"]}
    if missing := {f"{part}.txt" for part in parts} - licences:
        sys.exit(f"{path}: no text of the licence in {sorted(missing)}")
    print(f"{path}: contains {parts}, licences {sorted(licences)}")
