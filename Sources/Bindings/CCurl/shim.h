// SPDX-License-Identifier: Apache-2.0
// libcurl for Swift: its header, and typed one-liners for the variadic setters and getters.
#pragma once
// The header's own type checks are macros over constant options; the types below take their place.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <netinet/tcp.h>

static inline CURLcode CCurl_setLong(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode CCurl_setString(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode CCurl_setPointer(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode CCurl_setList(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode CCurl_setWriteFunction(CURL *easy, curl_write_callback function) {
    return curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, function);
}

static inline CURLcode CCurl_setPrerequestFunction(CURL *easy, curl_prereq_callback function) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

static inline CURLcode CCurl_setOpenSocketFunction(CURL *easy, curl_opensocket_callback function) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode CCurl_setCloseSocketFunction(CURL *easy,
                                                    curl_closesocket_callback function) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, function);
}

static inline CURLcode CCurl_getLong(CURL *easy, CURLINFO field, long *value) {
    return curl_easy_getinfo(easy, field, value);
}

static inline CURLcode CCurl_getOffset(CURL *easy, CURLINFO field, curl_off_t *value) {
    return curl_easy_getinfo(easy, field, value);
}

static inline CURLcode CCurl_getPrivate(CURL *easy, char **value) {
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, value);
}

static inline CURLMcode CCurl_multiSetLong(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode CCurl_multiSetPointer(CURLM *multi, CURLMoption option, void *value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode CCurl_multiSetSocketFunction(CURLM *multi, curl_socket_callback function) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, function);
}

static inline CURLMcode CCurl_multiSetTimerFunction(CURLM *multi,
                                                    curl_multi_timer_callback function) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, function);
}

/// CURLVERSION_NOW is a macro that names an enumerator, which Swift does not import.
static inline int CCurl_features(void) { return curl_version_info(CURLVERSION_NOW)->features; }
