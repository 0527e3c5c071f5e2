r"""Formulas, typeset when the site is built: LaTeX between dollars becomes MathML, which browsers draw themselves.

`$\theta$` is a formula in a line, `$$…$$` one of its own; forges read the same.  What the converter does not know would
be shown as it was written, so it is a warning, which fails a strict build.
"""

import html
import logging
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import latex2mathml.exceptions
from latex2mathml.converter import convert

log = logging.getLogger("mkdocs.hooks.maths")
# What arithmatex makes of $…$ and of $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ERRORS: tuple[type[Exception], ...] = (
    ElementTree.ParseError,
    *(one for one in vars(latex2mathml.exceptions).values() if isinstance(one, type)),
)
FUNCTIONS = r"\\(?:cos|det|dim|exp|ker|ln|log|sin|tan)\b"
# What forges understand and the converter does not, or does less well.
REWRITTEN = {
    r"\\operatorname\*\{arg(\\,)?(max|min)\}|\\arg\s*\\(max|min)": r"\\arg\2\3",
    r"\\(begin|end)\{(aligned|gathered)\}": r"\\\1{align*}",
    rf"(?<=[\w)}}])\s*({FUNCTIONS})": r"\\,\1",  # gaps before functions, and before arguments without brackets
    rf"({FUNCTIONS})(?!\s*([(\[_^|}},&]|\\left|\\[,;!|\\]|$))": r"\1\\,",
}
OPENING = frozenset("([{,=<>≤≥≠≈∈∼+−⋅×")  # after these a minus is a sign


def on_page_content(content: str, page: Any, **others: Any) -> str:
    """Replace the formulas of a page by MathML."""
    return FORMULA.sub(lambda found: typeset(html.unescape(found[2]), found[1] == "div", page.file.src_uri), content)


def typeset(latex: str, displayed: bool, page: str) -> str:
    """Return a formula as MathML, and warn of a formula that cannot be converted.

    Args:
        latex: The formula, without dollars.
        displayed: Whether it stands on a line of its own.
        page: Where it was found, for the warning.

    Returns:
        An element `math`, or the formula as it was written if it cannot be converted.
    """
    text = latex.strip()
    for before, after in REWRITTEN.items():
        text = re.sub(before, after, text)
    try:
        tree = ElementTree.fromstring(convert(text, xmlns="", display="block" if displayed else "inline"))
    except ERRORS as error:
        log.warning(f"A formula on {page} cannot be read ({type(error).__name__}): {latex}")
        return html.escape(latex)
    for element in list(tree.iter()):
        if re.match(r"\\.|[&$]", element.text or ""):
            log.warning(f"A formula on {page} has {element.text}, which is not known: {latex}")
        improve(element)
    tree.set("xmlns", NAMESPACE)
    if displayed:
        tree.set("tabindex", "0")  # where it is wider than the page, keys must be able to scroll it
    return ElementTree.tostring(tree, encoding="unicode")


def improve(element: ElementTree.Element) -> None:
    """Change an element of MathML, and what is directly in it, to what TeX would show."""
    children = list(element)
    if element.tag == "mi" and element.text == "~":
        element.tag, element.text = "mo", "∼"  # \sim is a relation
    elif element.text == "/":
        element.attrib |= {"lspace": "0", "rspace": "0"}
    elif element.tag in ("msub", "msubsup") and children[0].get("movablelimits"):
        element.tag = {"msub": "munder", "msubsup": "munderover"}[element.tag]
    elif len(children) == 1 and children[0].text in ("min", "max"):
        children[0].tag = "mi"  # an index, without the space around operators
    for before, sign in pairwise(children):
        if sign.text == "−" and before.tag == "mo" and before.text in OPENING:
            sign.set("form", "prefix")
