/* SPDX-License-Identifier: Apache-2.0 */
/* Within ctl/: the private half of the domain, its services and settings. Under the lock unless said otherwise. */
#ifndef CUBEFS_CTL_DOMAIN_PRIV_H
#define CUBEFS_CTL_DOMAIN_PRIV_H

#include <pthread.h>

#include "ctl/alarm.h"
#include "ctl/domain.h"
#include "ctl/ring.h"
#include "ctl/template.h"

#define CUBE_POOL_THREADS 64u
#define CUBE_LOGS_OPEN    1024u /* transcripts of which the file is open */

struct cube_domain_own {
	struct cube_domain d;
	struct cube_alarms *alarms;
	struct cube_list dying;         /* removed sandboxes whose destruction is under way */
	struct cube_list conns;         /* struct cube_conn, all that have a link to close */
	struct cube_list port_conns;    /* connections through exposed ports (ctl/ports/conn.c) */
	unsigned n_port_conns;          /* of these, those that count: not yet ended */
	struct cube_list doors_resting; /* that let nobody in while there are too many (ctl/ports/door.c) */
	unsigned works;                 /* works at the pool that will come back into the domain */
	pthread_cond_t quiet;           /* works became 0; with the lock */
	uint64_t fresh;                 /* the last number given by cube_cube_fresh_name */
	int cubes_fd;                   /* STATE/cubes */
	int templates_fd;               /* STATE/templates */
	int volumes_fd;                 /* STATE/volumes */
	struct cube_list volumes_dying; /* removed volumes that the backend may still have */
	struct cube_list unsynced;      /* cube_own.unsynced: saved, and not yet on the medium */
	struct cube_alarm metrics;      /* samples are due */
	uint64_t metrics_at;            /* seq of the sandbox that was asked for last */
	struct cube_alarm sync;
	struct cube_work sync_work;
	bool syncing;
	struct cube_ring_set logs; /* of the sandboxes: open files */
	bool stocks_go;            /* pools may begin to make sandboxes */
	unsigned sweeps;           /* that are under way */
	struct cube_alarm usage;   /* counters are due */
	struct cube_alarm guard;   /* guard.c looks at the disk */
	bool guarding;             /* it does */
	bool load_failed;          /* a sandbox of the state directory could not be read */
};

static inline struct cube_domain_own *cube_domain_own(struct cube_domain *d)
{
	return cube_container_of(d, struct cube_domain_own, d);
}

/* A call on a pool thread that works for the domain: counted, so that a shutdown can wait for it. The last
 * thing that @run does is cube_task_end, under the lock. */
void cube_task_submit(struct cube_domain *d, struct cube_work *w);
void cube_task_end(struct cube_domain *d);

/* service.c */
int cube_services_open(struct cube_domain *d, struct cube_err *err);
void cube_services_close(struct cube_domain *d);
/* Asks for status and templates behind. @done (may be NULL) comes under the lock. */
struct cube_refresh {
	struct cube_work work;
	struct cube_service *service;
	struct cube_domain *domain;
	struct cube_status status;
	struct cube_buf templates; /* struct cube_template_known after struct cube_template_known */
	struct cube_there there;
	bool has_there;
	uint64_t stamp;
	int code;
	struct cube_err err;
	void (*done)(struct cube_refresh *r); /* owns *r; NULL: it is freed */
	void *ctx;
};
/* For many questions of the kind of cube_service_has while the lock is held: asked of an index, which is the caller's
 * to free. NULL: out of memory. */
struct cube_map *cube_service_index(struct cube_service *s);
struct cube_cube *cube_service_indexed(const struct cube_map *index, const struct cube_info *info);
bool cube_service_listed(struct cube_service *s); /* its templates are known */
void cube_service_set_listed(struct cube_service *s);
uint64_t cube_service_stamp(struct cube_service *s); /* the next of a clock that only counts */
void cube_service_cancel(struct cube_service *s);    /* refreshes that are under way, and later ones */
int cube_service_refresh(struct cube_domain *d, struct cube_service *s, struct cube_refresh **ret,
			 struct cube_err *err);

/* usage.c: asks for the counters of every running sandbox that somebody looked at lately; false: none. */
#define CUBE_USAGE_MS 5000u
bool cube_usage_round(struct cube_domain *d);
/* Asks for those of one, and adds them to its metrics. */
void cube_usage_sample(struct cube_cube *c);
void cube_metrics_due(struct cube_alarm *a);

/* settings.c: the [daemon] section */
int cube_settings_load(struct cube_domain *d, struct cube_err *err);
void cube_settings_show(const struct cube_domain *d, struct cube_buf *out); /* `key value` lines */

#endif
