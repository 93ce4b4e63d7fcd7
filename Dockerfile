# syntax=docker/dockerfile:1
# Two stages: the first installs the hashed requirements and the wheel into a folder, the second has that folder and Python.
ARG PYTHON=3.12-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
COPY requirements/runtime.txt requirements/runtime.txt
RUN python -m venv --without-pip /opt/tpu-operator \
 && pip install --python /opt/tpu-operator/bin/python --require-hashes --only-binary :all: -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY src src
RUN pip wheel --no-deps --wheel-dir /wheels . \
 && pip install --python /opt/tpu-operator/bin/python --no-deps /wheels/*.whl \
 && python -m compileall -q /opt/tpu-operator/lib

FROM python:${PYTHON}
RUN rm -rf /usr/local/lib/python3*/site-packages/pip* /usr/local/bin/pip* \
 && groupadd --gid 65532 operator && useradd --uid 65532 --gid 65532 --no-create-home --shell /usr/sbin/nologin operator
COPY --from=build /opt/tpu-operator /opt/tpu-operator
ENV PATH=/opt/tpu-operator/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 TPU_OPERATOR_LOG_FORMAT=json
USER 65532:65532
ENTRYPOINT ["tpu-operator"]
CMD ["run"]
