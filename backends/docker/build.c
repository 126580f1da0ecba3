/* SPDX-License-Identifier: Apache-2.0 */
/* Templates that are made here: of a checkpoint, of a build's steps. */
#include "backends/docker/docker_priv.h"

#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The template @o->name becomes what @o says, unless it is that already. *ret_there: an image of that name and print is
 * there. */
static int build_place(struct cube_docker *d, const char *name, const char *ref, const char *print,
		       bool *ret_there, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *there = NULL;
	int rc = docker_image_get(d, ref, cancel, &there, NULL);

	*ret_there = rc == 0 && strcmp(docker_image_label(there, DOCKER_LABEL_PRINT), print) == 0;
	if (rc == -ENOENT || *ret_there)
		return 0;
	return rc == 0 ? docker_image_unused(d, name, ref, cube_json_str(there, "Id", "-"), cancel, err)
		       : docker_image_get(d, ref, cancel, &there, err);
}

int docker_template_keep(struct cube_backend *base, const char *cp, const struct cube_template *t,
			 struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *image = NULL;
	struct cube_template_config config;
	char ref[DOCKER_IMAGE], from[DOCKER_CP_REF];
	bool there = false;
	int rc = docker_checkpoint_get(d, cp, cancel, &image, err);

	docker_template_ref(t->name, ref);
	docker_checkpoint_ref(cp, from);
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc == 0)
		rc = build_place(d, t->name, ref, t->fingerprint, &there, cancel, err);
	if (rc < 0 || there)
		return rc;
	cube_template_config_init(&config);
	rc = docker_template_config(base, docker_image_label(image, DOCKER_LABEL_IMAGE), &config, err);
	if (rc == 0)
		rc = docker_image_make(d,
				       &(struct docker_image_order){.from = from,
								    .ref = ref,
								    .name = t->name,
								    .source = t->source,
								    .print = t->fingerprint,
								    .config = &config},
				       cancel, err);
	cube_template_config_done(&config);
	return rc;
}

/* ---- builds ---- */

/* What the steps left in /workspace: of the container's own layer, which nobody has mounted. */
static int build_no_workspace(const json_t *box)
{
	struct cube_names layers = CUBE_NAMES;
	int rc = docker_layers(box, &layers);
	cube_auto_fd upper = -1;

	if (rc == 0) {
		upper = open(layers.at[0], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		rc = upper < 0 ? -errno : cube_file_remove_tree(upper, "workspace");
	}
	cube_names_done(&layers);
	return rc;
}

int docker_template_commit(struct cube_backend *base, const char *id, const char *name,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	const struct cube_pair labels[] = {{DOCKER_LABEL_IMAGE, name}, {DOCKER_LABEL_PRINT, ""}};
	cube_auto(cube_json_auto) json_t *box = NULL, *there = NULL;
	char ref[DOCKER_IMAGE], container[DOCKER_REF];
	int rc = docker_box_get(d, id, cancel, &box, err);

	docker_template_ref(name, ref);
	if (rc == 0 && docker_image_get(d, ref, cancel, &there, NULL) == 0)
		return 0;
	if (rc == 0 && docker_box_state(box) != CUBE_IS_STOPPED)
		rc = cube_fail(err, -EBUSY, "sandbox %s runs: a layer is made of one that is stopped", id);
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc == 0)
		rc = docker_ref(id, container, err);
	if (rc < 0)
		return rc;
	rc = build_no_workspace(box);
	if (rc < 0)
		return cube_fail(err, rc, "/workspace of sandbox %s: %s", id, cube_errno_text(rc));
	return docker_commit(d, container, ref, false, labels, CUBE_COUNT(labels), err);
}

int docker_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
			   const struct cube_template_config *config, struct cube_err *err)
{
	struct cube_docker *d = docker_of(b);
	cube_auto(cube_json_auto) json_t *image = NULL, *old = NULL;
	char ref[DOCKER_IMAGE], base_ref[DOCKER_IMAGE];
	bool there = false;
	int rc = docker_template_find(d, base, base_ref, &image, NULL, err);

	docker_template_ref(t->name, ref);
	if (rc == 0)
		rc = build_place(d, t->name, ref, t->fingerprint, &there, NULL, err);
	if (rc == 0 && there && docker_image_get(d, ref, NULL, &old, NULL) == 0 &&
	    strcmp(cube_json_str(old, "Parent", ""), cube_json_str(image, "Id", "-")) == 0)
		return 0;
	if (rc == 0 && old != NULL)
		rc = docker_image_unused(d, t->name, ref, cube_json_str(old, "Id", "-"), NULL, err);
	return rc == 0 ? docker_image_make(d,
					   &(struct docker_image_order){.from = base_ref,
									.ref = ref,
									.name = t->name,
									.source = t->source,
									.print = t->fingerprint,
									.config = config},
					   NULL, err)
		       : rc;
}
