FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/sparkwave
COPY pyproject.toml README.md ./
COPY catalog catalog
COPY planner planner
COPY executor executor
COPY server server
RUN pip install --no-cache-dir . && python -m executor.class_archive
CMD ["sparkwave", "serve"]
