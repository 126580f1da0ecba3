/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/libvirt/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <libxml/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/alloc.h"

#define TREE_XML ((size_t)16 << 20)

static const xmlChar *tree_chars(const char *s)
{
	return (const xmlChar *)s;
}

void libvirt_tree_auto(xmlDocPtr *doc)
{
	xmlFreeDoc(*doc);
}

/* ---- writing ---- */

xmlNodePtr libvirt_tree_add(xmlNodePtr to, const char *name)
{
	return to != NULL ? xmlNewChild(to, to->ns, tree_chars(name), NULL) : NULL;
}

xmlNodePtr libvirt_tree_add_text(xmlNodePtr to, const char *name, const char *text)
{
	return to != NULL ? xmlNewTextChild(to, to->ns, tree_chars(name), tree_chars(text)) : NULL;
}

void libvirt_tree_set(xmlNodePtr to, const char *key, const char *value)
{
	if (to != NULL)
		(void)xmlNewProp(to, tree_chars(key), tree_chars(value));
}

void libvirt_tree_set_u64(xmlNodePtr to, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	libvirt_tree_set(to, key, text);
}

/* What libxml2 writes it does not check: read again, it is what was meant or nothing. */
int libvirt_tree_text(xmlDocPtr doc, char **ret)
{
	cube_auto(libvirt_tree_auto) xmlDocPtr again = NULL;
	xmlChar *text = NULL;
	int len = 0, rc = 0;

	xmlDocDumpMemoryEnc(doc, &text, &len, "UTF-8");
	if (text == NULL || len <= 0)
		return -ENOMEM;
	if (libvirt_tree_read((const char *)text, &again, NULL) < 0)
		rc = -EINVAL;
	else if ((*ret = cube_strdup((const char *)text)) == NULL)
		rc = -ENOMEM;
	xmlFree(text);
	return rc;
}

/* ---- reading ---- */

int libvirt_tree_read(const char *xml, xmlDocPtr *ret, struct cube_err *err)
{
	size_t len = strlen(xml);
	xmlDocPtr doc = NULL;

	if (len < TREE_XML)
		doc = xmlReadMemory(xml, (int)len, NULL, "UTF-8",
				    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (doc == NULL || xmlDocGetRootElement(doc) == NULL) {
		xmlFreeDoc(doc);
		return cube_fail(err, -EREMOTEIO, "libvirt's description of a domain is no XML");
	}
	*ret = doc;
	return 0;
}

static bool tree_is(xmlNodePtr node, const char *name, size_t len)
{
	const char *has = (const char *)node->name;

	return node->type == XML_ELEMENT_NODE && strncmp(has, name, len) == 0 && has[len] == '\0';
}

xmlNodePtr libvirt_tree_find(xmlNodePtr at, const char *path)
{
	while (at != NULL && *path != '\0') {
		size_t len = strcspn(path, "/");

		for (at = at->children; at != NULL && !tree_is(at, path, len);)
			at = at->next;
		path += len + (path[len] == '/');
	}
	return at;
}

xmlNodePtr libvirt_tree_next(xmlNodePtr at)
{
	const char *name = (const char *)at->name;

	for (at = at->next; at != NULL && !tree_is(at, name, strlen(name));)
		at = at->next;
	return at;
}

bool libvirt_tree_get(xmlNodePtr at, const char *key, char *out, size_t size)
{
	xmlChar *value = at != NULL ? xmlGetNoNsProp(at, tree_chars(key)) : NULL;
	bool fits = value != NULL && strlen((const char *)value) < size;

	if (fits)
		(void)snprintf(out, size, "%s", (const char *)value);
	xmlFree(value);
	return fits;
}

uint64_t libvirt_tree_get_u64(xmlNodePtr at, const char *key)
{
	char text[24];

	return libvirt_tree_get(at, key, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

char *libvirt_tree_content(xmlNodePtr at)
{
	xmlChar *text = at != NULL ? xmlNodeGetContent(at) : NULL;
	char *copy = text != NULL ? cube_strdup((const char *)text) : NULL;

	xmlFree(text);
	return copy;
}
