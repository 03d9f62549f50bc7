// Which sanitizers a test is built with: GCC says it by macros, Clang by features.
#pragma once

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define REEL_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define REEL_THREAD_SANITIZER
#endif
