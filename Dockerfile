FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps libjemalloc2 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/sparkwave
COPY pyproject.toml README.md LICENSE ./
COPY sparkwave sparkwave
COPY catalog catalog
COPY planner planner
COPY executor executor
COPY server server
COPY scripts/slim scripts/slim
RUN pip install --no-cache-dir . && sh scripts/slim && python -m sparkwave.executor.spark.class_archive
# What Spark's Kubernetes scheduler starts in the pods of executors.
COPY deploy/kubernetes/executor.sh /usr/local/bin/executor
RUN useradd --uid 1000 sparkwave && install -d -o sparkwave -g sparkwave /var/lib/sparkwave /etc/sparkwave
# DuckDB allocates much for each small step of an epoch.
ENV LD_PRELOAD=libjemalloc.so.2
ENV SPARK_HOME=/usr/local/lib/python3.11/site-packages/pyspark SPARKWAVE_DATA=/var/lib/sparkwave
USER sparkwave
CMD ["sparkwave", "serve"]
