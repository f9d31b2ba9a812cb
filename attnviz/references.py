"""BibTeX of the papers that the methods are from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ENTRIES: Mapping[str, str] = {
    "vaswani2017attention": """\
@inproceedings{vaswani2017attention,
  author    = {Vaswani, Ashish and Shazeer, Noam and Parmar, Niki and Uszkoreit, Jakob and
               Jones, Llion and Gomez, Aidan N. and Kaiser, {\\L}ukasz and Polosukhin, Illia},
  title     = {Attention Is All You Need},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2017},
}""",
    "dosovitskiy2021image": """\
@inproceedings{dosovitskiy2021image,
  author    = {Dosovitskiy, Alexey and Beyer, Lucas and Kolesnikov, Alexander and
               Weissenborn, Dirk and Zhai, Xiaohua and Unterthiner, Thomas and
               Dehghani, Mostafa and Minderer, Matthias and Heigold, Georg and
               Gelly, Sylvain and Uszkoreit, Jakob and Houlsby, Neil},
  title     = {An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale},
  booktitle = {International Conference on Learning Representations},
  year      = {2021},
}""",
    "abnar2020quantifying": """\
@inproceedings{abnar2020quantifying,
  author    = {Abnar, Samira and Zuidema, Willem},
  title     = {Quantifying Attention Flow in Transformers},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational
               Linguistics},
  year      = {2020},
}""",
    "chefer2021generic": """\
@inproceedings{chefer2021generic,
  author    = {Chefer, Hila and Gur, Shir and Wolf, Lior},
  title     = {Generic Attention-Model Explainability for Interpreting Bi-Modal and
               Encoder-Decoder Transformers},
  booktitle = {IEEE/CVF International Conference on Computer Vision},
  year      = {2021},
}""",
    "gildenblat2020exploring": """\
@misc{gildenblat2020exploring,
  author       = {Gildenblat, Jacob},
  title        = {Exploring Explainability for Vision Transformers},
  howpublished = {\\url{https://github.com/jacobgil/vit-explain}},
  year         = {2020},
}""",
    "selvaraju2017gradcam": """\
@inproceedings{selvaraju2017gradcam,
  author    = {Selvaraju, Ramprasaath R. and Cogswell, Michael and Das, Abhishek and
               Vedantam, Ramakrishna and Parikh, Devi and Batra, Dhruv},
  title     = {{Grad-CAM}: Visual Explanations from Deep Networks via Gradient-Based Localization},
  booktitle = {IEEE International Conference on Computer Vision},
  year      = {2017},
}""",
    "bousselham2024legrad": """\
@misc{bousselham2024legrad,
  author        = {Bousselham, Walid and Boggust, Angie and Chaybouti, Sofian and
                   Strobelt, Hendrik and Kuehne, Hilde},
  title         = {{LeGrad}: An Explainability Method for Vision Transformers via Feature Formation
                   Sensitivity},
  eprint        = {2404.03214},
  archiveprefix = {arXiv},
  year          = {2024},
}""",
    "kobayashi2020attention": """\
@inproceedings{kobayashi2020attention,
  author    = {Kobayashi, Goro and Kuribayashi, Tatsuki and Yokoi, Sho and Inui, Kentaro},
  title     = {Attention is Not Only a Weight: Analyzing Transformers with Vector Norms},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language
               Processing},
  year      = {2020},
}""",
    "amir2021deep": """\
@misc{amir2021deep,
  author        = {Amir, Shir and Gandelsman, Yossi and Bagon, Shai and Dekel, Tali},
  title         = {Deep {ViT} Features as Dense Visual Descriptors},
  eprint        = {2112.05814},
  archiveprefix = {arXiv},
  year          = {2021},
}""",
    "oquab2023dinov2": """\
@misc{oquab2023dinov2,
  author        = {Oquab, Maxime and Darcet, Timoth{\\'e}e and Moutakanni, Th{\\'e}o and others},
  title         = {{DINOv2}: Learning Robust Visual Features without Supervision},
  eprint        = {2304.07193},
  archiveprefix = {arXiv},
  year          = {2023},
}""",
}
"""Key → entry."""

CITED: Mapping[str, tuple[str, ...]] = {
    "attention": ("vaswani2017attention",),
    "rollout": ("abnar2020quantifying",),
    "flow": ("abnar2020quantifying",),
    "relevance": ("chefer2021generic",),
    "gradient_rollout": ("gildenblat2020exploring",),
    "attention_gradcam": ("selvaraju2017gradcam", "chefer2021generic"),
    "gradcam": ("selvaraju2017gradcam",),
    "legrad": ("bousselham2024legrad",),
    "value_weighted": ("kobayashi2020attention",),
    "similarity": ("amir2021deep",),
    "pca": ("oquab2023dinov2",),
}
"""Method → the keys of its papers."""

METRICS_CITED = ("dosovitskiy2021image",)
"""Of a plot of heads against depth."""


def keys_of(methods: Iterable[str]) -> list[str]:
    """The keys of all papers of these methods, each once, in order."""
    return list(dict.fromkeys(key for method in methods for key in CITED[method]))


def bibtex(keys: Iterable[str]) -> str:
    """The entries of a .bib file."""
    return "\n\n".join(ENTRIES[key] for key in keys) + "\n"
