# A Kafka cluster around the simulated group coordinator, for tests.
#
#   docker build -t coordinator-sim .
#   docker run --rm -p 9092:9092 -e ADVERTISED=PLAINTEXT://localhost:9092 coordinator-sim
#
# Its control surface, on 9099, is reached from outside of the container with a token of yours alone:
#
#   docker run --rm -p 9092:9092 -p 9099:9099 -e COORDINATOR_SIM_CONTROL_TOKEN=... coordinator-sim
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements requirements
RUN pip install --no-cache-dir --require-hashes --prefix=/install -r requirements/image.txt \
    && pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY coordinator_sim coordinator_sim
COPY coordinator_sim_pytest coordinator_sim_pytest
COPY conformance conformance
COPY examples examples
COPY reports reports
COPY scenarios scenarios
RUN pip install --no-cache-dir --no-deps --no-build-isolation --prefix=/install .

FROM python:3.11-slim
COPY --from=build /install /usr/local
RUN useradd --create-home --uid 10001 coordinator \
    && python -m compileall -q /usr/local/lib/python3.11/site-packages/coordinator_sim
USER coordinator
WORKDIR /home/coordinator
ENV ADVERTISED=PLAINTEXT://localhost:9092 \
    PYTHONUNBUFFERED=1
EXPOSE 9092 9099
HEALTHCHECK --interval=2s --timeout=2s --start-period=5s --retries=10 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:9099/readyz', timeout=1)"]
STOPSIGNAL SIGTERM
# What stands behind the image's name goes to serve: --topics orders:6, --brokers 3, ...
ENTRYPOINT ["/bin/sh", "-c", "exec coordinator-sim serve --listeners PLAINTEXT://0.0.0.0:9092 --advertised-listeners \"$ADVERTISED\" --control-host $([ -n \"$COORDINATOR_SIM_CONTROL_TOKEN\" ] && echo 0.0.0.0 || echo 127.0.0.1) --control-port 9099 \"$@\"", "serve"]
