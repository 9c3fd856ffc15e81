/* A minimal assert for the runtime's C tests: CHECK* count failures and go on; a test program ends
 * with `return htvm_test_report();`. */
#ifndef HTVM_TEST_H
#define HTVM_TEST_H

#include <stdio.h>
#include <string.h>

static int htvm_test_checks, htvm_test_failures;

#define CHECK(condition) htvm_test_check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_EQ(a, b) \
    htvm_test_equal((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_HAS(text, part) htvm_test_has((text), (part), __FILE__, __LINE__)

static inline int htvm_test_check(int ok, const char *what, const char *file, int line)
{
    htvm_test_checks++;
    if (!ok) {
        htvm_test_failures++;
        fprintf(stderr, "%s:%d: %s\n", file, line, what);
    }
    return ok;
}

static inline int htvm_test_equal(long long a, long long b, const char *what, const char *file,
                                  int line)
{
    const int ok = htvm_test_check(a == b, what, file, line);
    if (!ok) {
        fprintf(stderr, "    %lld and %lld\n", a, b);
    }
    return ok;
}

/* The text exists and contains the part. */
static inline int htvm_test_has(const char *text, const char *part, const char *file, int line)
{
    const int found = text != NULL && strstr(text, part) != NULL;
    const int ok = htvm_test_check(found, "text contains part", file, line);
    if (!ok) {
        fprintf(stderr, "    \"%s\" in \"%s\"\n", part, text == NULL ? "(none)" : text);
    }
    return ok;
}

static inline int htvm_test_report(void)
{
    printf("%d checks, %d failures\n", htvm_test_checks, htvm_test_failures);
    return htvm_test_failures != 0;
}

#endif
