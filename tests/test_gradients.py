"""Methods with gradients, and methods on features, against a slow float64 twin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timm.models.vision_transformer import VisionTransformer

import attnviz
import models
from attnviz.errors import BadOption, CaptureFailed, UnknownName
from attnviz.methods import gradients
from attnviz.record import LayerAttention, Maps, Product
from tests import gradient_twin
from tests.conftest import PREFIXES, small_input, small_module, small_vit
from tests.gradient_twin import Twin

KEEPS = ("maps", "factors")
CLASS = 3


def twin_of(module: torch.nn.Module) -> Twin:
    return gradient_twin.run(module, small_input(), patch=16, heads=3)


def map_gradients(twin: Twin, score: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(score, twin.maps, retain_graph=True))


def close(heat, expected, prefix, tolerance=2e-5):
    """The map is the expected row without its prefix, on the 2 × 3 grid, relative to its range."""
    wanted = expected[prefix:].detach().numpy().reshape(2, 3)
    assert wanted.any()
    np.testing.assert_allclose(heat.values, wanted, atol=tolerance * np.abs(wanted).max(), rtol=0)


@pytest.fixture(scope="module", params=list(PREFIXES), ids="-".join)
def case(request):
    """(module, twin, records by route) for each kind of prefix, with a class as the target."""
    module = small_module(request.param)
    vit = models.wrap(module)
    records = {keep: attnviz.observe(vit, small_input(), target=CLASS, keep=keep) for keep in KEEPS}
    return module, twin_of(module), records, len(request.param)


def class_score(module, twin: Twin) -> torch.Tensor:
    return twin_output(module, twin)[CLASS]


def twin_output(module, twin: Twin) -> torch.Tensor:
    """The twin's logits; a distilled model's are the mean of those of its two heads."""
    if "head_dist.weight" not in twin.state:
        return twin.logits(twin.feature)
    s, tokens = twin.state, twin.tokens
    second = tokens[1] @ s["head_dist.weight"].T + s["head_dist.bias"]
    return (twin.logits(tokens[0]) + second) / 2


def twin_read(twin: Twin, feature: torch.Tensor) -> torch.Tensor:
    s, first = twin.state, twin.logits(feature)
    if "head_dist.weight" not in s:
        return first
    return (first + feature @ s["head_dist.weight"].T + s["head_dist.bias"]) / 2


QUERIES = ["mean", (0, 0), (1, 2)]


def row_of(matrix, query, prefix):
    tokens = matrix.shape[0]
    if query == "mean":
        return matrix[prefix:].mean(0)
    assert tokens == prefix + 6
    return matrix[prefix + query[0] * 3 + query[1]]


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize("method", ["relevance", "gradient_rollout"])
def test_what_adds_up_over_layers_equals_whole_matrices(case, method, query, keep):
    module, twin, records, prefix = case
    found = map_gradients(twin, class_score(module, twin))
    for first, last in [(0, 2), (1, 2), (1, 1)]:
        whole = getattr(gradient_twin, method)(twin.maps[first : last + 1], found[first : last + 1])
        heat = attnviz.explain(
            records[keep], method, query=query, first_layer=first, last_layer=last
        )
        close(heat, row_of(whole, query, prefix), prefix)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_attention_gradcam_equals_the_dense_one(case, query, keep):
    module, twin, records, prefix = case
    found = map_gradients(twin, class_score(module, twin))
    for layer in range(3):
        # The rows are averaged before the relu, as one query is one row.
        weighted = found[layer].mean((1, 2))[:, None, None] * twin.maps[layer]
        expected = row_of(weighted.mean(0), query, prefix).clamp(min=0)
        if query != "mean":
            dense = gradient_twin.attention_gradcam(twin.maps[layer], found[layer])
            assert torch.allclose(row_of(dense, query, prefix), expected)
        heat = attnviz.explain(records[keep], "attention_gradcam", query=query, layer=layer)
        scale = float(row_of(weighted.mean(0), query, prefix).detach().abs().max())
        np.testing.assert_allclose(
            heat.values.ravel(), expected[prefix:].detach(), atol=2e-5 * scale
        )


@pytest.mark.parametrize("keep", KEEPS)
def test_gradcam_equals_the_formula(case, keep):
    module, twin, records, prefix = case
    (gradient,) = torch.autograd.grad(class_score(module, twin), twin.fed[-1], retain_graph=True)
    expected = gradient_twin.gradcam(twin.fed[-1], gradient, prefix)[prefix:].detach()
    scale = float((twin.fed[-1].detach() @ gradient[prefix:].mean(0)).abs().max())
    heat = attnviz.explain(records[keep], "gradcam")
    np.testing.assert_allclose(heat.values.ravel(), expected, atol=2e-5 * scale)


def test_gradcam_is_not_zero_everywhere():
    maps = [
        attnviz.explain(
            attnviz.observe(models.wrap(small_module(prefix)), small_input(), target=target),
            "gradcam",
        ).values
        for prefix in PREFIXES
        for target in range(5)
    ]
    assert sum(bool(values.any()) for values in maps) > 10


@pytest.mark.parametrize("keep", KEEPS)
def test_legrad_asks_each_layer_its_own_score(case, keep):
    _, twin, records, prefix = case
    own = []
    for layer, stream in enumerate(twin.streams):
        score = twin_read(twin, twin.norm(stream.mean(0)))[CLASS]
        own += torch.autograd.grad(score, twin.maps[layer], retain_graph=True)
    for first, last in [(0, 2), (0, 0), (1, 2)]:
        heat = attnviz.explain(records[keep], "legrad", first_layer=first, last_layer=last)
        close(heat, gradient_twin.legrad(own[first : last + 1]), prefix)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("query", [(0, 0), (1, 2)], ids=str)
def test_value_weighted_attention_is_the_length_of_what_is_added(case, query, keep):
    _, twin, records, prefix = case
    for layer in range(3):
        projection = twin.state[f"blocks.{layer}.attn.proj.weight"]
        lengths = gradient_twin.value_weighted(twin.maps[layer], twin.values[layer], projection)
        heat = attnviz.explain(records[keep], "value_weighted", query=query, layer=layer)
        close(heat, row_of(lengths, query, prefix), prefix)
        assert "heads: all, added" in heat.caption(0.5)[0]
        alone = gradient_twin.value_weighted(
            twin.maps[layer][1:2], twin.values[layer][1:2], projection[:, 8:16]
        )
        heat = attnviz.explain(records[keep], "value_weighted", query=query, layer=layer, head=1)
        close(heat, row_of(alone, query, prefix), prefix)
        assert heat.fact("heads") is None


def test_similarity_is_the_cosine_of_last_features(case):
    _, twin, records, prefix = case
    tokens = twin.tokens.detach()
    for query, asked in [((1, 2), tokens[prefix + 5]), ("mean", tokens[prefix:].mean(0))]:
        expected = gradient_twin.similarity(tokens, asked)[prefix:]
        heat = attnviz.explain(records["maps"], "similarity", query=query)
        np.testing.assert_allclose(heat.values.ravel(), expected, atol=1e-5)
    own = attnviz.explain(records["maps"], "similarity", query=(1, 2)).values
    assert own[1, 2] == pytest.approx(1, abs=1e-6)


def test_gradients_of_the_map_are_those_that_autograd_gives_the_map_itself(case):
    module, twin, records, _ = case
    found = map_gradients(twin, class_score(module, twin))
    for keep in KEEPS:
        for layer, expected in zip(records[keep].layers, found, strict=True):
            product = gradients.gradient_of(layer)
            ours = product.block(0, layer.tokens)
            scale = float(expected.abs().max())
            assert float((ours - expected).abs().max()) < 2e-5 * scale
            np.testing.assert_allclose(product.mean, expected.mean((1, 2)), atol=1e-5 * scale)


def test_the_score_is_the_class_s_output(case):
    module, twin, records, _ = case
    expected = float(class_score(module, twin).detach())
    for record in records.values():
        assert record.score == pytest.approx(expected, rel=1e-4)
        assert record.target == "class 3 (class 3)"


def test_gradient_rollout_s_rows_sum_to_one(case):
    *_, records, prefix = case
    for query in QUERIES:
        settled = {"first_layer": 0, "last_layer": -1}
        tokens = records["factors"].layout.query_tokens(query)
        row = attnviz.METHODS["gradient_rollout"].compute(records["factors"], tokens, **settled)
        assert float(row.sum()) == pytest.approx(1, abs=1e-5)
        assert row.shape == (prefix + 6,)


def golden(gradient_times_map):
    """A record of two tokens whose Ā are given: A ½ everywhere, ∂y/∂A twice the Ā."""
    layers = []
    for number, mean in enumerate(gradient_times_map):
        half = torch.full((1, 2, 2), 0.5)
        outputs = torch.tensor([mean]) * 2
        product = Product(outputs, torch.eye(2)[None])
        layers.append(LayerAttention(f"l{number}", Maps(half), gradient=product))
    return layers


@pytest.mark.parametrize("method", attnviz.METHODS)
def test_a_value_below_zero_comes_only_from_a_method_that_says_so(method):
    record = attnviz.observe(models.wrap(small_module()), small_input(), target=CLASS)
    for query in ("cls", (0, 1)):
        values = attnviz.explain(record, method, query=query).values
        assert attnviz.METHODS[method].signed or values.min() >= 0


def test_relevance_gives_the_golden_matrix():
    from dataclasses import replace

    record = attnviz.observe(models.wrap(small_module(())), small_input(), target=0)
    layout = attnviz.TokenLayout((), (1, 2))
    layers = golden([[[0.1, 0.2], [0.0, 0.3]], [[0.0, 0.5], [0.4, 0.1]]])
    record = replace(record, layers=tuple(layers), layout=layout)
    rows = [attnviz.explain(record, "relevance", query=(0, col)).values[0] for col in (0, 1)]
    np.testing.assert_allclose(rows, [[1.1, 0.85], [0.44, 1.51]], atol=1e-6)


# Targets


def test_the_predicted_class_is_the_one_of_the_largest_output():
    vit = models.wrap(small_module())
    record = attnviz.observe(vit, small_input(), target="predicted")
    index = record.predictions[0][1]
    assert record.target == f"the predicted class {index} (class {index})"
    by_number = attnviz.observe(vit, small_input(), target=index)
    by_label = attnviz.observe(vit, small_input(), target=f"Class {index}")
    maps = [attnviz.explain(r, "relevance").values for r in (record, by_number, by_label)]
    assert (maps[0] == maps[1]).all() and (maps[1] == maps[2]).all()


@pytest.mark.parametrize("prefix", [each for each in PREFIXES if each], ids="-".join)
@pytest.mark.parametrize("reference", ["cls", (1, 2)])
def test_similarity_to_a_token_of_the_picture(reference, prefix):
    module = small_module(prefix, num_classes=0)
    twin, count = twin_of(module), len(prefix)
    tokens = twin.tokens
    if reference == "cls":
        subject, fixed = tokens[count:].mean(0), tokens[0].detach()
    else:
        subject, fixed = tokens[0], tokens[count + 5].detach()
    score = (subject * fixed).sum() / (subject.norm() * fixed.norm())
    record = attnviz.observe(
        models.wrap(module), small_input(), target=attnviz.similarity_to(reference)
    )
    assert record.score == pytest.approx(float(score.detach()), abs=1e-5)
    expected = gradient_twin.relevance(twin.maps, map_gradients(twin, score))
    close(attnviz.explain(record, "relevance", query="cls"), expected[0], count)


def test_similarity_to_another_picture():
    module = small_module(("cls",), num_classes=0)
    vit = models.wrap(module)
    other = attnviz.observe(vit, small_input(5))
    record = attnviz.observe(vit, small_input(), target=attnviz.similarity_to(other))
    twin = twin_of(module)
    fixed = gradient_twin.run(module, small_input(5), patch=16, heads=3).feature.detach()
    score = (twin.feature * fixed).sum() / (twin.feature.norm() * fixed.norm())
    assert record.score == pytest.approx(float(score.detach()), abs=1e-5)
    assert record.target == "similarity to another picture"
    expected = gradient_twin.relevance(twin.maps, map_gradients(twin, score))
    close(attnviz.explain(record, "relevance", query="cls"), expected[0], 1)
    own = []
    for layer, stream in enumerate(twin.streams):
        feature = twin.norm(stream.mean(0))
        own_score = (feature * fixed).sum() / (feature.norm() * fixed.norm())
        own += torch.autograd.grad(own_score, twin.maps[layer], retain_graph=True)
    close(attnviz.explain(record, "legrad"), gradient_twin.legrad(own), 1)


def test_a_picture_compared_with_itself_has_no_gradient_and_the_figure_says_so():
    vit = models.wrap(small_module(("cls",), num_classes=0))
    itself = attnviz.observe(vit, small_input())
    record = attnviz.observe(vit, small_input(), target=attnviz.similarity_to(itself))
    assert record.score == pytest.approx(1, abs=1e-6)
    for method in ("relevance", "attention_gradcam", "gradcam"):
        assert "the gradient is zero but for rounding" in " ".join(
            attnviz.explain(record, method).notes
        )
    other = attnviz.observe(vit, small_input(5))
    record = attnviz.observe(vit, small_input(), target=attnviz.similarity_to(other))
    assert not attnviz.explain(record, "relevance").notes


def test_a_target_without_influence_gives_a_map_of_zeros_and_says_so():
    module = small_module()
    torch.nn.init.zeros_(module.head.weight)
    record = attnviz.observe(models.wrap(module), small_input(), target=0)
    for method in ("attention_gradcam", "gradcam", "legrad"):
        heat = attnviz.explain(record, method)
        assert not heat.values.any()
        assert "zero everywhere" in " ".join(heat.notes)


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        ("Class 9", UnknownName, "Nearest: .*class 0|class"),
        (5, UnknownName, "There is no class 5: there are 5, numbered from 0 to 4"),
        (-1, UnknownName, "numbered from 0 to 4"),
        (1.5, BadOption, "1.5 came"),
        (True, BadOption, "True came"),
        ([1], BadOption, "came"),
        (attnviz.similarity_to("reg1"), UnknownName, "no query 'reg1'"),
        (attnviz.similarity_to("mean"), BadOption, "mean of all patches is none"),
        (attnviz.similarity_to((2, 0)), UnknownName, "row 2"),
    ],
)
def test_a_target_that_is_none_is_refused_before_the_model_runs(target, error, said):
    vit = models.wrap(small_module())
    ran = []
    vit.module.register_forward_hook(lambda *_: ran.append(1))
    attnviz.verify(vit)
    ran.clear()
    attnviz.observe(vit, small_input())
    ran.clear()
    with pytest.raises(error, match=said):
        attnviz.observe(vit, small_input(), target=target)
    assert not ran


def test_a_class_of_a_headless_model_names_the_targets_that_exist():
    vit = models.wrap(small_module(num_classes=0))
    for target in ("predicted", 0, "tabby"):
        with pytest.raises(BadOption, match=r"has no classes.*similarity_to\(\"cls\"\)"):
            attnviz.observe(vit, small_input(), target=target)


def test_another_model_s_record_is_no_reference():
    record = attnviz.observe(models.wrap(small_module(("cls", "dist"))), small_input())
    vit = models.wrap(small_module())
    with pytest.raises(BadOption, match="Observe it with the same model"):
        attnviz.observe(vit, small_input(), target=attnviz.similarity_to(record))


def test_labels_of_imagenet_answer_to_each_of_their_names():
    from attnviz.target import class_index
    from models.labels import class_names

    classes = class_names(1000)
    assert class_index("tabby cat", classes) == 281
    assert class_index("Tabby, tabby cat", classes) == 281
    with pytest.raises(UnknownName, match=r"2 classes are called 'crane'.*134, 517"):
        class_index("crane", classes)
    with pytest.raises(UnknownName, match="tabby"):
        class_index("taby", classes)


def test_the_one_output_of_a_regression_is_a_target():
    module = small_module(num_classes=1)
    record = attnviz.observe(models.wrap(module), small_input(), target="predicted")
    twin = twin_of(module)
    assert record.predictions == ()
    assert record.target == "the predicted class 0 (output)"
    assert record.score == pytest.approx(float(twin.logits(twin.feature)[0].detach()), rel=1e-4)


@pytest.mark.parametrize("method", [n for n, m in attnviz.METHODS.items() if m.needs_gradient])
def test_a_record_without_a_target_says_what_is_missing(method):
    record = attnviz.observe(models.wrap(small_module()), small_input())
    with pytest.raises(BadOption, match='observe the picture with target="predicted"'):
        attnviz.explain(record, method)


# What a gradient must leave alone


def test_the_model_is_left_as_it_was(tmp_path):
    module = small_module()
    module.train()
    next(module.parameters()).requires_grad_(False)
    before = {name: p.clone() for name, p in module.named_parameters()}
    asks = {name: p.requires_grad for name, p in module.named_parameters()}
    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.ones_like(parameter)
    record = attnviz.observe(models.wrap(module), small_input(), target=1)
    attnviz.explain(record, "relevance")
    assert module.training and all(part.training for part in module.modules())
    assert asks == {name: p.requires_grad for name, p in module.named_parameters()}
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter, before[name])
        assert not parameter.requires_grad or bool((parameter.grad == 1).all())
    hooks = [h for m in module.modules() for h in (m._forward_hooks, m._forward_pre_hooks)]
    assert not any(hooks)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_caller_s_mode_and_frozen_parameters_change_nothing(mode):
    vit = models.wrap(small_module())
    expected = attnviz.explain(attnviz.observe(vit, small_input(), target=1), "relevance").values
    vit.module.requires_grad_(False)
    with mode():
        record = attnviz.observe(vit, small_input(), target=1)
        assert (attnviz.explain(record, "relevance").values == expected).all()
    kept = [record.features, record.feature, record.activations.values]
    for layer in record.layers:
        kept += [layer.values, layer.gradient.outputs, layer.own_gradient.outputs]
    assert not any(tensor.requires_grad for tensor in kept)


def test_a_second_call_equals_a_fresh_one_bit_for_bit():
    vit = models.wrap(small_module())
    attnviz.observe(vit, small_input(3), target=0)
    attnviz.observe(vit, small_input(4), target="predicted")
    again = attnviz.observe(vit, small_input(), target=2)
    fresh = attnviz.observe(models.wrap(small_module()), small_input(), target=2)
    for method in attnviz.METHODS:
        one, other = (attnviz.explain(r, method).values for r in (again, fresh))
        assert (one == other).all(), method


def test_a_target_does_not_change_what_the_model_did():
    vit = models.wrap(small_module())
    plain = attnviz.observe(vit, small_input(), keep="factors")
    aimed = attnviz.observe(vit, small_input(), keep="factors", target=1)
    assert plain.predictions == aimed.predictions
    for one, other in zip(plain.layers, aimed.layers, strict=True):
        np.testing.assert_allclose(one.probs(), other.probs(), atol=1e-6)


def test_nan_weights_are_named_by_their_layer():
    module = small_module()
    with torch.no_grad():
        module.blocks[1].attn.qkv.weight[0, 0] = float("nan")
    with pytest.raises(CaptureFailed, match=r"blocks\.1\.attn"):
        attnviz.observe(models.wrap(module), small_input(), target=0)


def test_progress_counts_both_ways_and_stops_the_pass():
    vit = models.wrap(small_module())
    steps = []
    attnviz.observe(
        vit, small_input(), target=0, progress=lambda done, total: steps.append((done, total))
    )
    assert steps == [(step, 6) for step in range(1, 7)]

    class Stopped(Exception):
        pass

    def stop(done, total):
        if done == 5:
            raise Stopped

    with pytest.raises(Stopped):
        attnviz.observe(vit, small_input(), target=0, progress=stop)
    assert all(p.requires_grad for p in vit.module.parameters())
    assert attnviz.observe(vit, small_input(), target=0).target


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    expected = attnviz.observe(models.wrap(small_module()), small_input(), target=1)
    vit = models.wrap(small_module().to(dtype))
    record = attnviz.observe(vit, small_input(), target=1)
    tolerance = 0.15 if dtype == torch.bfloat16 else 1e-4
    for method in ("relevance", "legrad", "gradcam", "value_weighted"):
        wanted = attnviz.explain(expected, method).values
        heat = attnviz.explain(record, method).values
        np.testing.assert_allclose(heat, wanted, atol=tolerance * np.abs(wanted).max())


# Models that pool by attention


def pooled_module(prefix=False) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = VisionTransformer(
            img_size=(32, 48),
            patch_size=16,
            embed_dim=24,
            depth=2,
            num_heads=3,
            num_classes=4,
            global_pool="map",
            class_token=prefix,
            pool_include_prefix=not prefix,
        )
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.35)
    return module


@pytest.mark.parametrize("prefix", [False, True])
def test_legrad_of_a_model_that_pools_by_attention_is_the_pooler_s(prefix):
    module = pooled_module(prefix)
    record = attnviz.observe(models.wrap(module), small_input(), target=2)
    slow = pooled_module(prefix).double().eval()
    slow.attn_pool.fused_attn = False
    maps = []
    slow.attn_pool.register_forward_pre_hook(lambda *_: maps.clear())
    softmax = torch.Tensor.softmax

    def keeping(tensor, *args, **kwargs):
        maps.append(softmax(tensor, *args, **kwargs))
        return maps[-1]

    streams = []
    for block in slow.blocks:
        block.register_forward_hook(lambda _, __, out: streams.append(out))
    slow(small_input().double())
    expected = []
    for stream in streams:
        torch.Tensor.softmax = keeping
        try:
            logits = slow.head(slow.fc_norm(slow.pool(slow.norm(stream.detach()))))
        finally:
            torch.Tensor.softmax = softmax
        (gradient,) = torch.autograd.grad(logits[0, 2], maps[-1])
        expected.append(gradient[0].clamp(min=0).mean(0).mean(0))
    mean = sum(expected) / len(expected)
    mean = mean[-6:] if len(mean) > 6 else mean
    close(attnviz.explain(record, "legrad"), mean, 0)


@pytest.mark.parametrize("keep", KEEPS)
def test_a_target_that_nothing_changes_says_that_its_gradient_is_zero(keep):
    vit = small_vit()
    with torch.no_grad():
        vit.module.head.weight.zero_()  # as some models of timm begin
    record = attnviz.observe(vit, small_input(), target=CLASS, keep=keep)
    heat = attnviz.explain(record, "relevance", query="mean")
    assert heat.values.any()  # each query keeps itself
    assert any("the gradient is zero" in note for note in heat.notes)
    sound = attnviz.observe(small_vit(), small_input(), target=CLASS, keep=keep)
    notes = attnviz.explain(sound, "relevance", query="mean").notes
    assert not any("gradient is zero" in note for note in notes)
