/* SPDX-License-Identifier: Apache-2.0 */
/* Our narrow view of libxml2: documents that are written, and looked at. */
#ifndef CUBEFS_BACKENDS_LIBVIRT_TREE_H
#define CUBEFS_BACKENDS_LIBVIRT_TREE_H

#include <libxml/tree.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/err.h"

/* Writing. Where memory is out the result is NULL, and nothing is done to a NULL parent: who writes looks once, at
 * libvirt_tree_text. */
xmlNodePtr libvirt_tree_add(xmlNodePtr to, const char *name);
xmlNodePtr libvirt_tree_add_text(xmlNodePtr to, const char *name, const char *text);
void libvirt_tree_set(xmlNodePtr to, const char *key, const char *value);
void libvirt_tree_set_u64(xmlNodePtr to, const char *key, uint64_t value);
/* The document as text, the caller's (cube_free). -EINVAL: it has what no XML may have; -ENOMEM. */
int libvirt_tree_text(xmlDocPtr doc, char **ret);

/* Reading. Nothing is fetched and no entity is expanded. -EREMOTEIO. */
int libvirt_tree_read(const char *xml, xmlDocPtr *ret, struct cube_err *err);
/* The first element of that name below @at, by a path "devices/channel"; NULL. */
xmlNodePtr libvirt_tree_find(xmlNodePtr at, const char *path);
/* The next one after @at with the same name; NULL. */
xmlNodePtr libvirt_tree_next(xmlNodePtr at);
/* An attribute; false where there is none or it is too long. */
bool libvirt_tree_get(xmlNodePtr at, const char *key, char *out, size_t size);
uint64_t libvirt_tree_get_u64(xmlNodePtr at, const char *key);
/* What an element has as text, the caller's (cube_free); NULL: none. */
char *libvirt_tree_content(xmlNodePtr at);

void libvirt_tree_auto(xmlDocPtr *doc); /* cleanup */

#endif
