#!/bin/sh
# What Spark's Kubernetes scheduler runs in an executor's pod: `executor`, with everything in the environment
# (Spark: resource-managers/kubernetes/docker/src/main/dockerfiles/spark/entrypoint.sh). $SPARK_HOME is pyspark.
set -eu
: "${SPARK_HOME:?}" "${SPARK_DRIVER_URL:?}" "${SPARK_EXECUTOR_ID:?}" "${SPARK_EXECUTOR_POD_IP:?}"

# SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, … are one option each.
number=0
while option=$(printenv "SPARK_JAVA_OPT_$number"); do
    set -- "$@" "$option"
    number=$((number + 1))
done

exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "$@" \
    "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
