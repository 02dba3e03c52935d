// SPDX-License-Identifier: Apache-2.0
// OpenSSL for Swift: its headers, and typed one-liners for its function-like macros and variadics.
#pragma once
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

static inline long COpenSSL_requireTLS12(SSL_CTX *context) {
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

static inline long COpenSSL_setMode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_mode(context, mode);
}

static inline void COpenSSL_setReadAhead(SSL_CTX *context, size_t bufferBytes) {
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, bufferBytes);
}

static inline void COpenSSL_setNoSessionCache(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void COpenSSL_setNoRenegotiation(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
}

static inline long COpenSSL_setServerName(SSL *stream, const char *name) {
    return SSL_set_tlsext_host_name(stream, name);
}

static inline EVP_PKEY *COpenSSL_generateP256(void) { return EVP_EC_gen("P-256"); }
