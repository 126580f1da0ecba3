/* SPDX-License-Identifier: Apache-2.0 */
/* What is noted of a sandbox in its domain's description, and what else of that counts here. */
#include "backends/libvirt/note.h"

#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"

#define NOTE_NS     "urn:cubefs:sandbox:1"
#define NOTE_PREFIX "cubefs"

void libvirt_note_done(struct libvirt_note *n)
{
	cube_free(cube_steal(n->labels));
}

/* ---- writing ---- */

void libvirt_note_add(xmlNodePtr domain, const struct libvirt_note *note)
{
	xmlNodePtr box = libvirt_tree_add(libvirt_tree_add(domain, "metadata"), "sandbox");

	if (box == NULL)
		return;
	xmlSetNs(box, xmlNewNs(box, (const xmlChar *)NOTE_NS, (const xmlChar *)NOTE_PREFIX));
	libvirt_tree_set(box, "uid", note->uid);
	libvirt_tree_set(box, "name", note->name);
	libvirt_tree_set(box, "template", note->template);
	libvirt_tree_set_u64(box, "created", note->created);
	libvirt_tree_set_u64(box, "disk", note->disk);
	libvirt_tree_set(box, "net", note->net == CUBE_NET_OPEN ? "open" : "none");
	if (note->labels != NULL)
		(void)libvirt_tree_add_text(box, "labels", note->labels);
}

/* ---- reading ---- */

static void note_mark(xmlNodePtr domain, struct libvirt_note *n)
{
	xmlNodePtr box = libvirt_tree_find(domain, "metadata/sandbox");
	char net[16] = "";

	while (box != NULL && (box->ns == NULL || strcmp((const char *)box->ns->href, NOTE_NS) != 0))
		box = libvirt_tree_next(box);
	if (box == NULL || !libvirt_tree_get(box, "uid", n->uid, sizeof(n->uid)) ||
	    !libvirt_is_ours(n->uid)) {
		n->uid[0] = '\0';
		return;
	}
	(void)libvirt_tree_get(box, "name", n->name, sizeof(n->name));
	(void)libvirt_tree_get(box, "template", n->template, sizeof(n->template));
	(void)libvirt_tree_get(box, "net", net, sizeof(net));
	n->created = libvirt_tree_get_u64(box, "created");
	n->disk = libvirt_tree_get_u64(box, "disk");
	n->net = strcmp(net, "open") == 0 ? CUBE_NET_OPEN : CUBE_NET_NONE;
	n->labels = libvirt_tree_content(libvirt_tree_find(box, "labels"));
}

/* By its name, as the guest sees it; where it does not run it has no path that libvirt has chosen. */
static void note_port(xmlNodePtr domain, const char *port, char out[PATH_MAX])
{
	for (xmlNodePtr c = libvirt_tree_find(domain, "devices/channel"); c != NULL;
	     c = libvirt_tree_next(c)) {
		char name[64];

		if (libvirt_tree_get(libvirt_tree_find(c, "target"), "name", name, sizeof(name)) &&
		    strcmp(name, port) == 0)
			(void)libvirt_tree_get(libvirt_tree_find(c, "source"), "path", out, PATH_MAX);
	}
}

static void note_disk(xmlNodePtr domain, const char *serial, char out[PATH_MAX])
{
	for (xmlNodePtr d = libvirt_tree_find(domain, "devices/disk"); d != NULL; d = libvirt_tree_next(d)) {
		cube_auto_str has = libvirt_tree_content(libvirt_tree_find(d, "serial"));

		if (has != NULL && strcmp(has, serial) == 0)
			(void)libvirt_tree_get(libvirt_tree_find(d, "source"), "file", out, PATH_MAX);
	}
}

static void note_uuid(xmlNodePtr domain, struct libvirt_note *n)
{
	cube_auto_str uuid = libvirt_tree_content(libvirt_tree_find(domain, "uuid"));

	if (uuid != NULL && strlen(uuid) < sizeof(n->uuid))
		(void)snprintf(n->uuid, sizeof(n->uuid), "%s", uuid);
}

/* Text of an element as a number; libvirt gives memory in KiB. */
static uint64_t note_number(xmlNodePtr at)
{
	cube_auto_str text = libvirt_tree_content(at);
	uint64_t n = 0;

	return text != NULL && cube_num_u64(text, UINT64_MAX, &n) == 0 ? n : 0;
}

int libvirt_note_read(const char *xml, struct libvirt_note *ret, struct cube_err *err)
{
	cube_auto(libvirt_tree_auto) xmlDocPtr doc = NULL;
	struct libvirt_note n = {.labels = NULL};
	xmlNodePtr domain;
	int rc = libvirt_tree_read(xml, &doc, err);

	if (rc < 0)
		return rc;
	domain = xmlDocGetRootElement(doc);
	note_mark(domain, &n);
	note_port(domain, LIBVIRT_PORT, n.agent);
	note_port(domain, LIBVIRT_ASKED, n.asked);
	note_disk(domain, LIBVIRT_ROOT, n.root);
	note_disk(domain, LIBVIRT_WORKSPACE, n.workspace);
	note_uuid(domain, &n);
	n.memory = note_number(libvirt_tree_find(domain, "memory")) << 10;
	n.cpus = (uint32_t)note_number(libvirt_tree_find(domain, "vcpu"));
	if (n.uid[0] == '\0' && libvirt_tree_find(domain, "devices/interface") != NULL)
		n.net = CUBE_NET_OPEN;
	*ret = n;
	return 0;
}
