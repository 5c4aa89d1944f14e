"""What lies in a page that memoptctl made: of `report`, or of `--plot`."""
import array
import base64
import json
import re
import zlib

DATA = re.compile(r'<script id="data" type="application/json">(.*?)</script>', re.DOTALL)
TYPES = {"f64": "d", "f32": "f", "u32": "I", "u8": "B"}


def columns(value):
    if isinstance(value, dict):
        if "base64" in value:
            data = base64.b64decode(value["base64"], validate=True)
            return array.array(TYPES[value["type"]], zlib.decompress(data) if value.get("zlib") else data)
        return {key: columns(one) for key, one in value.items()}
    return [columns(one) for one in value] if isinstance(value, list) else value


def read(path):
    with open(path, encoding="utf-8") as file:
        return of(file.read())


def of(page):
    found = DATA.findall(page)
    if len(found) != 1:
        raise ValueError(f"{len(found)} elements of data in the page")
    return columns(json.loads(found[0]))
