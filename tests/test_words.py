"""What the page says: no word that it does not explain, and none that only builders know."""

import re

import pytest
from page_visit import calm, open_view, stand_ins, visit

import models
from attnviz.methods import METHODS
from attnviz.ui.page import INTRODUCTION
from attnviz.ui.views import VIEWS

UNSAID = re.compile(
    r"\b(logits?|embeddings?|tensors?|hyper-?parameters?|layernorm|MLPs?|QKV|einsum|backbone|ablations?"
    r"|latents?|inference|dtype|numpy|kwargs?|repr|session|cache|callback|widget|API|SOTA|backprop\w*"
    r"|forward pass|eval(uate)? mode|checkpoint|argmax|softmax|state[ _]dict|L2 norm)\b",
    re.IGNORECASE,
)
"""Words of the trade that the page has no need of."""

EXPLAINED = {
    "class token": "one more, the *class token*, stands for\nthe whole picture",
    "token": "each becomes a *token*",
    "query": "each token, the *query*, gather",
    "head": "each *head* lets",
    "attention": "its **attention**",
}
"""Word of the trade → where the introduction, which stands above every view, says what it is."""

NAMES = {card.label for card in models.MODELS.values()}

HELPED = {
    r"registers?": "extra token without a place",
    r"residual": "passes each token on as it was",
    r"sinks?": "collects? attention|collect at least|collects far more attention",
    r"head fusion": "made one map|mean of the heads' weights|by their mean",
    r"Spearman": "same order",
}
"""Word → what must be said of it, on the view where it stands, in whatever help there is."""


def said(page):
    """All that a visitor can read on the page: elements, labels, choices and helps."""
    texts = []
    for element in page.main:
        texts += _of(element)
    for element in page.sidebar:
        texts += _of(element)
    return texts


def _of(element):
    children = getattr(element, "children", None)
    if children:
        return [text for child in children.values() for text in _of(child)]
    if element.type in ("code", "html", "arrow_data_frame"):
        return []
    found = [getattr(element, name, None) for name in ("value", "label", "help", "body")]
    proto = getattr(element, "proto", None)
    found += [getattr(proto, "help", None), getattr(proto, "label", None)]
    found += list(getattr(element, "options", None) or [])
    return [text for text in found if isinstance(text, str)]


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch, stand_ins(patch):
        yield visit()


def test_the_introduction_says_what_every_view_takes_for_known():
    for words in EXPLAINED.values():
        assert words in INTRODUCTION


def check(page):
    texts = [text for text in said(page) if text.removesuffix(" (download)") not in NAMES]
    assert len(texts) > 30
    for text in texts:
        if "Source: " in text:  # a formula, for who wants it
            continue
        assert not (found := UNSAID.search(text)), (found[0], text)
    everything = " ".join(texts)
    for word, explanation in HELPED.items():
        if re.search(rf"\b{word}\b", everything, re.IGNORECASE):
            assert re.search(explanation, everything), word


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_speaks_plainly(page, view):
    open_view(page, view)
    check(page)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_speaks_plainly(page, method):
    open_view(page, "map")
    calm(page.segmented_control(key="method").set_value(method).run())
    check(page)
