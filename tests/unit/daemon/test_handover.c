/* SPDX-License-Identifier: Apache-2.0 */
/* What a program writes down for the one that takes its place, and what that one reads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fs/handover.h"

static void test_names(void **state)
{
	struct cube_handover h, got;
	struct cube_err err;
	int fd;

	(void)state;
	cube_handover_init(&h);
	h.n[CUBE_HAND_FUSE] = 7;
	h.n[CUBE_HAND_UID] = UINT32_MAX;
	h.s[CUBE_HAND_MOUNT] = "/a=b\n/c";
	h.s[CUBE_HAND_9P + CUBE_OPTS_9P - 1] = "unix:/x";
	assert_int_equal(cube_handover_write(&h, &fd, &err), 0);
	assert_int_equal(cube_handover_read(fd, &got, &err), 0);
	(void)close(fd);
	assert_memory_equal(got.n, h.n, sizeof(h.n));
	for (size_t i = 0; i < CUBE_HAND_STRINGS; i++) {
		if (h.s[i] == NULL)
			assert_null(got.s[i]);
		else
			assert_string_equal(got.s[i], h.s[i]);
	}
	cube_handover_done(&got);
}

static int read_text(const char *text, size_t len, struct cube_handover *ret)
{
	int fd = memfd_create("test", MFD_CLOEXEC), r;
	struct cube_err err;

	assert_int_equal(write(fd, text, len), len);
	r = cube_handover_read(fd, ret, &err);
	(void)close(fd);
	return r;
}

/* Both may be of different versions. */
static void test_other_names(void **state)
{
	static const char text[] = "cubefs-handover=1\0fd.later=3\0uid=12\0later\0later=x\0state=/s";
	struct cube_handover h;

	(void)state;
	assert_int_equal(read_text(text, sizeof(text), &h), 0);
	assert_int_equal(h.n[CUBE_HAND_UID], 12);
	assert_int_equal(h.n[CUBE_HAND_GID], -1);
	assert_string_equal(h.s[CUBE_HAND_STATE], "/s");
	assert_null(h.s[CUBE_HAND_CONF]);
	cube_handover_done(&h);
	assert_int_equal(read_text("cubefs-handover=2", 18, &h), -EPROTO);
	assert_int_equal(read_text("", 0, &h), -EPROTO);
}

/* The configuration as it was read, written and read again. */
static struct cube_conf *again(const char *text, size_t len, struct cube_buf *out)
{
	struct cube_conf *conf, *got;
	struct cube_err err = {0};

	assert_int_equal(cube_conf_parse(text, len, "the first", &conf, &err), 0);
	assert_int_equal(cube_handover_conf(conf, out), 0);
	if (cube_conf_parse(out->data, out->len, "the second", &got, &err) < 0)
		fail_msg("%s", err.text);
	cube_conf_free(conf);
	return got;
}

static void test_configuration(void **state)
{
	static const char text[] = "before = 1\n"
				   "[backend a b]\n"
				   "kind: local ; a comment\n"
				   "word = a=b:c;d # e\n"
				   "semicolon =;x\n"
				   "empty =\n"
				   "[daemon]\n";
	struct cube_buf out = CUBE_BUF(1 << 20);
	struct cube_conf *got = again(text, sizeof(text) - 1, &out);
	const struct cube_conf_section *s = cube_conf_find(got, "backend a b");

	(void)state;
	assert_string_equal(cube_conf_get(cube_conf_find(got, ""), "before"), "1");
	assert_string_equal(cube_conf_get(s, "kind"), "local");
	assert_string_equal(cube_conf_get(s, "word"), "a=b:c;d # e");
	assert_string_equal(cube_conf_get(s, "semicolon"), ";x");
	assert_string_equal(cube_conf_get(s, "empty"), "");
	assert_non_null(cube_conf_find(got, "daemon"));
	assert_null(cube_conf_at(got, 3));
	cube_conf_free(got);
	cube_buf_done(&out);
}

/* As long as a line may be where it came from. */
static void test_long_line(void **state)
{
	char text[200];
	struct cube_buf out = CUBE_BUF(sizeof(text));
	struct cube_conf *got;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "[s]\nkey=", 8);
	got = again(text, 150, &out);
	assert_int_equal(out.len, 151); /* and the end of its line */
	assert_int_equal(strlen(cube_conf_get(cube_conf_find(got, "s"), "key")), 142);
	cube_conf_free(got);
	cube_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_long_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
