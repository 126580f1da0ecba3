/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of the agent protocol (docs/cube-init-protocol.md), for both ends.
 *
 * Nothing here allocates but cube_wire_join, with the functions it was given. Every read is bounded: a
 * reader that ran over its end is `bad` and gives zeros from then on, so a decoder reads all its fields
 * and looks once. Plain libc only: the agent is linked without the rest of backends/base. */
#ifndef CUBEFS_BACKENDS_AGENT_WIRE_H
#define CUBEFS_BACKENDS_AGENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUBE_WIRE_MAGIC       0x45425543u /* "CUBE" */
#define CUBE_WIRE_VERSION_MIN 1
#define CUBE_WIRE_VERSION_MAX 1

#define CUBE_WIRE_HEADER      16
#define CUBE_WIRE_BODY_MAX    65536u
#define CUBE_WIRE_TEXT_MAX    (4u << 20)   /* of a START */
#define CUBE_WIRE_ENV_MAX     (1u << 20)   /* of a START */
#define CUBE_WIRE_CWD_MAX     4096u        /* of a START or SESSION */
#define CUBE_WIRE_USER_MAX    256u         /* of a START */
#define CUBE_WIRE_EXPORTS_MAX (1u << 20)   /* of a SESSION */
#define CUBE_WIRE_INPUT_MAX   32768u       /* bytes in one INPUT or DATA */
#define CUBE_WIRE_WINDOW      (256u << 10) /* input that was sent and not yet taken by the command */
#define CUBE_WIRE_DATA_WINDOW (1u << 20)   /* DATA that was sent and not yet acknowledged, a job */
#define CUBE_WIRE_ERR_MAX     399u         /* of an ENDED */
/* The longest message that is cut into frames. */
#define CUBE_WIRE_LONG_MAX                                                                                   \
	(CUBE_WIRE_TEXT_MAX + CUBE_WIRE_ENV_MAX + CUBE_WIRE_CWD_MAX + CUBE_WIRE_USER_MAX + 64u)

enum cube_wire_type {
	/* Both directions, first. */
	CUBE_WIRE_HELLO = 1,
	/* To the agent. */
	CUBE_WIRE_START = 16,
	CUBE_WIRE_INPUT,
	CUBE_WIRE_EOF,
	CUBE_WIRE_KILL,
	CUBE_WIRE_INTERRUPT,
	CUBE_WIRE_WINSIZE,
	CUBE_WIRE_TIMEOUT,
	CUBE_WIRE_FORGET,
	CUBE_WIRE_SESSION_CLOSE,
	CUBE_WIRE_KILL_ALL,
	CUBE_WIRE_FREEZE,
	CUBE_WIRE_PAUSED,
	CUBE_WIRE_ACK,
	CUBE_WIRE_RESUME,
	CUBE_WIRE_LOOK = 40,
	CUBE_WIRE_DEADLINE,
	/* From the agent. */
	CUBE_WIRE_SYNCED = 64,
	CUBE_WIRE_STARTED,
	CUBE_WIRE_OUTPUT,
	CUBE_WIRE_CREDIT,
	CUBE_WIRE_DATA,
	CUBE_WIRE_SESSION,
	CUBE_WIRE_ENDED,
	CUBE_WIRE_GONE,
	CUBE_WIRE_LEFT = 80,
};

/* What DEADLINE asks for. */
enum cube_wire_end { CUBE_WIRE_END_NONE, CUBE_WIRE_END_STOP, CUBE_WIRE_END_STILL, CUBE_WIRE_END_COUNT };

/* Flags of a frame. */
#define CUBE_WIRE_MORE     1u      /* the message goes on in the next frame, which has the same type and id */
#define CUBE_WIRE_FD_OUT   2u      /* START: the spool's descriptor comes with the first byte ... */
#define CUBE_WIRE_FD_ORDER 4u      /* ... and behind it that of its index */
#define CUBE_WIRE_OPTIONAL 0x8000u /* whoever does not know the type passes over it */

/* Capabilities in HELLO. */
#define CUBE_WIRE_CAP_FDS    1u /* descriptors can be passed; else output comes as DATA */
#define CUBE_WIRE_CAP_GROUPS 2u /* what a job started is known exactly, by cgroups */
#define CUBE_WIRE_CAP_TTY    4u
#define CUBE_WIRE_CAP_USERS  8u
#define CUBE_WIRE_CAP_TIMES  16u /* LOOK and DEADLINE */
#define CUBE_WIRE_CAP_HELD   32u /* LEFT says what the shells hold */

/* LEFT, of the number: nobody is left, but a shell has a file that whom it starts could write without opening it. */
#define CUBE_WIRE_LEFT_HELD (UINT64_C(1) << 63)

struct cube_wire_head {
	uint32_t len; /* of the body */
	uint16_t type;
	uint16_t flags;
	uint64_t id; /* a job's or a session's; else 0 */
};

/* Reading. */
struct cube_wire_in {
	const unsigned char *p;
	size_t left;
	bool bad;
};

void cube_wire_in_init(struct cube_wire_in *in, const void *data, size_t len);
uint8_t cube_wire_u8(struct cube_wire_in *in);
uint16_t cube_wire_u16(struct cube_wire_in *in);
uint32_t cube_wire_u32(struct cube_wire_in *in);
uint64_t cube_wire_u64(struct cube_wire_in *in);
/* The next @len bytes where they lie; NULL (and bad) when there are fewer. */
const void *cube_wire_bytes(struct cube_wire_in *in, size_t len);
/* True when nothing was missing and nothing is left. */
bool cube_wire_in_done(const struct cube_wire_in *in);

/* Writing into memory of the caller's. What does not fit sets `full` and changes nothing else. */
struct cube_wire_out {
	unsigned char *p;
	size_t len, cap;
	bool full;
};

void cube_wire_out_init(struct cube_wire_out *out, void *data, size_t cap);
void cube_wire_put_u8(struct cube_wire_out *out, uint8_t v);
void cube_wire_put_u16(struct cube_wire_out *out, uint16_t v);
void cube_wire_put_u32(struct cube_wire_out *out, uint32_t v);
void cube_wire_put_u64(struct cube_wire_out *out, uint64_t v);
void cube_wire_put_bytes(struct cube_wire_out *out, const void *data, size_t len);
/* A frame: begin, put the body, end with what begin gave. A frame that did not fit is taken back whole
 * by end, which then gives false. */
size_t cube_wire_begin(struct cube_wire_out *out, enum cube_wire_type type, unsigned flags, uint64_t id);
bool cube_wire_end(struct cube_wire_out *out, size_t begun);

/* Frames out of a stream of bytes: one buffer of fixed size, in the caller's memory. */
struct cube_wire_feed {
	size_t off, len; /* consumed and filled part of data */
	unsigned char data[CUBE_WIRE_HEADER + CUBE_WIRE_BODY_MAX];
};

void cube_wire_feed_init(struct cube_wire_feed *f);
/* Where the next bytes go and how many fit (never 0 once cube_wire_feed_next gave 0). The caller adds
 * what it read to f->len. */
void *cube_wire_feed_space(struct cube_wire_feed *f, size_t *ret_space);
/* The next frame: 1 with *head and *body (valid until the next call of feed_space), 0 when it is not
 * complete yet, -EPROTO when it is longer than a frame may be. */
int cube_wire_feed_next(struct cube_wire_feed *f, struct cube_wire_head *head, const void **body);

/* For a stream that may begin with what is left of an earlier conversation: drops bytes until a HELLO begins.
 * True when one does (it need not be complete). */
bool cube_wire_feed_sync(struct cube_wire_feed *f);

/* Long messages (START, SESSION) are cut into frames that follow each other directly, all but the last
 * with MORE. The first four bytes of the message say how long the rest is. */
struct cube_wire_piece {
	const void *data;
	size_t len;
};

/* Bytes of all frames of a message made of @pieces. */
size_t cube_wire_cut_size(const struct cube_wire_piece *pieces, unsigned n);
/* Adds them; @flags go to the first frame. False (nothing added) when they do not fit. */
bool cube_wire_cut(struct cube_wire_out *out, enum cube_wire_type type, unsigned flags, uint64_t id,
		   const struct cube_wire_piece *pieces, unsigned n);

struct cube_wire_join {
	void *(*alloc)(size_t size);
	void (*release)(void *p);
	size_t max;          /* a longer message is -EMSGSIZE */
	unsigned char *data; /* the message, without the length before it; the join's until taken */
	size_t len, total;
	bool open;     /* in the middle of a message ... */
	uint16_t type; /* ... of this type and id */
	uint64_t id;
};

void cube_wire_join_init(struct cube_wire_join *j, size_t max, void *(*alloc)(size_t),
			 void (*release)(void *));
void cube_wire_join_done(struct cube_wire_join *j);
/* Takes a frame of a long message: 1 when it is complete (data and len), 0 when more must come, -EPROTO,
 * -EMSGSIZE or -ENOMEM. */
int cube_wire_join_add(struct cube_wire_join *j, const struct cube_wire_head *head, const void *body);

/* Messages. get_ functions return false for a body that is not exactly of the message's form or has a
 * value out of range. put_ functions add one whole frame and return false when it does not fit. */
struct cube_wire_hello {
	uint16_t min, max; /* versions */
	uint64_t caps;
	uint64_t boot; /* the agent's; 0 from the daemon */
};
bool cube_wire_put_hello(struct cube_wire_out *out, const struct cube_wire_hello *m);
bool cube_wire_get_hello(const void *body, size_t len, struct cube_wire_hello *ret);
/* The version that both speak; 0 when there is none. */
unsigned cube_wire_version(const struct cube_wire_hello *m);

#define CUBE_WIRE_START_ARGV  1u
#define CUBE_WIRE_START_STDIN 2u /* a pipe; else empty */
#define CUBE_WIRE_START_TTY   4u
#define CUBE_WIRE_START_MERGE 8u
#define CUBE_WIRE_START_CWD   16u /* cwd is given */
#define CUBE_WIRE_START_ALL   31u
struct cube_wire_start {
	uint64_t session;
	uint64_t limit;
	uint32_t timeout_s;
	uint16_t what; /* CUBE_WIRE_START_ */
	uint16_t rows, cols;
	const char *text, *env, *cwd, *user; /* not NUL ended */
	size_t text_len, env_len, cwd_len, user_len;
};
/* Bytes of all frames of START. */
size_t cube_wire_start_size(const struct cube_wire_start *m);
/* @flags: CUBE_WIRE_FD_ */
bool cube_wire_put_start(struct cube_wire_out *out, uint64_t job, unsigned flags,
			 const struct cube_wire_start *m);
/* Of a joined message; *ret points into it. */
bool cube_wire_get_start(const void *data, size_t len, struct cube_wire_start *ret);

struct cube_wire_started {
	uint32_t pid;
	bool tail; /* it was forgotten already: only what is left of its output comes */
	uint64_t session;
	uint64_t received; /* of its input: got by the agent */
	uint64_t taken;    /* of its input: written to the command */
};
bool cube_wire_put_started(struct cube_wire_out *out, uint64_t job, const struct cube_wire_started *m);
bool cube_wire_get_started(const void *body, size_t len, struct cube_wire_started *ret);

struct cube_wire_output {
	uint64_t total, err_total;
	uint64_t lost; /* bytes that are not counted in total: the spool's disk was full */
};
bool cube_wire_put_output(struct cube_wire_out *out, uint64_t job, const struct cube_wire_output *m);
bool cube_wire_get_output(const void *body, size_t len, struct cube_wire_output *ret);

struct cube_wire_data {
	bool err;        /* stderr */
	uint64_t offset; /* place in the whole output */
	uint64_t before; /* bytes of the same stream before these */
	const void *bytes;
	size_t len;
};
bool cube_wire_put_data(struct cube_wire_out *out, uint64_t job, const struct cube_wire_data *m);
bool cube_wire_get_data(const void *body, size_t len, struct cube_wire_data *ret);

#define CUBE_WIRE_SESSION_FRESH   1u /* the shell ended; a new one comes with the next command */
#define CUBE_WIRE_SESSION_EXPORTS 2u /* exports are given */
struct cube_wire_session {
	uint8_t what;
	const char *cwd, *exports; /* not NUL ended */
	size_t cwd_len, exports_len;
};
size_t cube_wire_session_size(const struct cube_wire_session *m);
bool cube_wire_put_session(struct cube_wire_out *out, uint64_t session, const struct cube_wire_session *m);
bool cube_wire_get_session(const void *data, size_t len, struct cube_wire_session *ret);

enum cube_wire_how { /* how a job ended; the numbers are the protocol's */
		     CUBE_WIRE_EXIT,
		     CUBE_WIRE_SIGNAL,
		     CUBE_WIRE_TIMED_OUT,
		     CUBE_WIRE_KILLED, /* by the agent, for the daemon */
		     CUBE_WIRE_LOST,   /* nobody saw the end */
		     CUBE_WIRE_HOWS,
};
struct cube_wire_ended {
	uint8_t how; /* cube_wire_how */
	uint8_t code;
	uint8_t signal; /* 0: none */
	struct cube_wire_output output;
	uint64_t wall_ns;
	int32_t err;      /* negative errno when it could not be started, else 0 */
	const char *text; /* then the sentence, not NUL ended */
	size_t text_len;
};
bool cube_wire_put_ended(struct cube_wire_out *out, uint64_t job, const struct cube_wire_ended *m);
bool cube_wire_get_ended(const void *body, size_t len, struct cube_wire_ended *ret);

/* The short ones: a type, an id, and at most two numbers (WINSIZE: rows, cols; CREDIT: received, taken). */
bool cube_wire_put_plain(struct cube_wire_out *out, enum cube_wire_type type, uint64_t id);
bool cube_wire_put_number(struct cube_wire_out *out, enum cube_wire_type type, uint64_t id, uint64_t v);
bool cube_wire_put_pair(struct cube_wire_out *out, enum cube_wire_type type, uint64_t id, uint64_t a,
			uint64_t b);
bool cube_wire_get_number(const void *body, size_t len, uint64_t *ret);
bool cube_wire_get_pair(const void *body, size_t len, uint64_t *ret_a, uint64_t *ret_b);

#endif
