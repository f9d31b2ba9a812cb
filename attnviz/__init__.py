"""See inside Vision Transformers: the map on screen is the map the model used."""

from attnviz.interrupt import watch_imports

watch_imports()  # before the imports below, which take seconds

from attnviz.correspond import Match, mutual_matches, similar
from attnviz.errors import (
    AttnVizError,
    BadImage,
    BadOption,
    BadWeights,
    CaptureFailed,
    UnknownName,
    UnsupportedModel,
)
from attnviz.explain import Explanation, estimate, explain, observe
from attnviz.faithfulness import Faithfulness, compare_maps, faithfulness
from attnviz.film import Film, film
from attnviz.heatmap import Heatmap
from attnviz.images import open_image
from attnviz.many import observe_many
from attnviz.mass import mass_mask
from attnviz.methods import METHODS
from attnviz.metrics import METRICS, HeadMetrics, head_metrics
from attnviz.plates import Beside, HeadGrid, beside, heads
from attnviz.plot_export import MetricPlot, plot
from attnviz.record import AttentionRecord, LayerAttention
from attnviz.record_file import load_record
from attnviz.sinks import Sink, find_sinks, swallowed_by
from attnviz.target import similarity_to
from attnviz.tokens import TokenLayout
from attnviz.verify import verify

__all__ = [
    "METHODS",
    "METRICS",
    "AttentionRecord",
    "AttnVizError",
    "BadImage",
    "BadOption",
    "BadWeights",
    "Beside",
    "CaptureFailed",
    "Explanation",
    "Faithfulness",
    "Film",
    "HeadGrid",
    "HeadMetrics",
    "Heatmap",
    "LayerAttention",
    "Match",
    "MetricPlot",
    "Sink",
    "TokenLayout",
    "UnknownName",
    "UnsupportedModel",
    "beside",
    "compare_maps",
    "estimate",
    "explain",
    "faithfulness",
    "film",
    "find_sinks",
    "head_metrics",
    "heads",
    "load_record",
    "mass_mask",
    "mutual_matches",
    "observe",
    "observe_many",
    "open_image",
    "plot",
    "similar",
    "similarity_to",
    "swallowed_by",
    "verify",
]
