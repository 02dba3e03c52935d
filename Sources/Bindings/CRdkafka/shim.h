// SPDX-License-Identifier: Apache-2.0
// librdkafka for Swift: its headers, and typed one-liners for what Swift cannot import (variadics).
#pragma once
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

/// Copies key and value. The message has no headers; see CRdkafka_produceWithHeaders.
static inline rd_kafka_resp_err_t
CRdkafka_produce(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, const void *key,
                 size_t keyBytes, const void *value, size_t valueBytes, void *opaque) {
    return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                             RD_KAFKA_V_KEY((void *)key, keyBytes),
                             RD_KAFKA_V_VALUE((void *)value, valueBytes),
                             RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
}

/// As above; `headers` belongs to the library on success and still to the caller on failure.
static inline rd_kafka_resp_err_t
CRdkafka_produceWithHeaders(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition,
                            const void *key, size_t keyBytes, const void *value,
                            size_t valueBytes, rd_kafka_headers_t *headers, void *opaque) {
    return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                             RD_KAFKA_V_KEY((void *)key, keyBytes),
                             RD_KAFKA_V_VALUE((void *)value, valueBytes),
                             RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque),
                             RD_KAFKA_V_END);
}
