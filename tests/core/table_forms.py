"""One table in every form in which a reader takes it; docs/guides/own-data.md lists them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

import polars as pl

COLUMNS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
ROWS = (
    ("The woman, she ran.", "The man, he ran.", "stereo", "gender"),
    ("The boy café won.", "The girl café won.", "antistereo", "gender"),
    ("Old men sing.", "Young men sing.", "stereo", "age"),
)
RECORDS = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


def delimited(
    separator: str = ",",
    columns: Sequence[str] = COLUMNS,
    rows: Sequence[Sequence[str]] = ROWS,
    end: str = "\n",
) -> str:
    """Return the table with quoted cells."""
    lines = [separator.join(columns), *(separator.join(f'"{cell}"' for cell in row) for row in rows)]
    return end.join(lines) + end


def workbook(columns: Sequence[str] = COLUMNS, rows: Sequence[Sequence[object]] = ROWS) -> bytes:
    """Return a workbook of one sheet, as small as its program reads it."""

    def cell(value: object) -> str:
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'

    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in (columns, *rows))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
    }
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return stored.getvalue()


def parquet() -> bytes:
    """Return the table as Parquet."""
    stored = io.BytesIO()
    pl.DataFrame(RECORDS).write_parquet(stored)
    return stored.getvalue()


def json_lines() -> bytes:
    """Return an object per line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS).encode()


def json_columns() -> bytes:
    """Return an object of columns, each by the number of the row, as pandas writes it."""
    columns = {name: {str(n): record[name] for n, record in enumerate(RECORDS)} for name in COLUMNS}
    return json.dumps(columns).encode()


FORMS: Mapping[str, Callable[[], bytes]] = {
    "CSV": lambda: delimited().encode(),
    "columns separated by `;`": lambda: delimited(";").encode(),
    "columns separated by tabs": lambda: delimited("\t").encode(),
    "columns separated by `|`": lambda: delimited("|").encode(),
    "columns separated by `^` or `~`": lambda: delimited("^").encode(),
    "a first line `sep=;`": lambda: ("sep=;\r\n" + delimited(";", end="\r\n")).encode(),
    "a byte-order mark": lambda: b"\xef\xbb\xbf" + delimited(end="\r\n").encode(),
    "UTF-16": lambda: delimited("\t").encode("utf-16"),
    "blanks after the separators": lambda: delimited(", ").encode(),
    "names of columns in another case": lambda: delimited(columns=[name.title() for name in COLUMNS]).encode(),
    "names of columns with blanks or hyphens": lambda: delimited(
        columns=["Sent more", " sent-less", "Stereo/Antistereo", "bias type "]
    ).encode(),
    "values in another case, or with outer blanks": lambda: delimited(
        rows=[(*row[:2], f" {row[2].upper()} ", f"{row[3]} ") for row in ROWS]
    ).encode(),
    "JSON, a list of objects": lambda: json.dumps(RECORDS).encode(),
    "JSON, an object with one list": lambda: json.dumps({"version": 1, "rows": RECORDS}).encode(),
    "JSON, columns": json_columns,
    "JSON Lines": json_lines,
    "Parquet": parquet,
    "xlsx, the first sheet": workbook,
}
"""Content of a file by the name of its form."""
