/* SPDX-License-Identifier: Apache-2.0 */
/* A domain's description.
 *
 * What a machine has is what its sandbox needs: two disks (the root over its template, and /workspace), the port of the
 * agent, a serial console into a file, randomness, and with net=open a network of its own behind QEMU's own translation,
 * in which it is alone. Nothing of this machine is passed in. */
#include "backends/libvirt/note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/macros.h"

#define XML_WORDS "console=ttyS0 quiet panic=-1 random.trust_cpu=on"

static void xml_os(xmlNodePtr domain, const struct libvirt_machine *m)
{
	const struct libvirt_template *t = m->template;
	xmlNodePtr os = libvirt_tree_add(domain, "os");
	xmlNodePtr type = libvirt_tree_add_text(os, "type", "hvm");
	char words[sizeof(t->words) + 256];

	libvirt_tree_set(type, "arch", t->arch);
	if (strcmp(t->arch, "x86_64") == 0)
		libvirt_tree_set(type, "machine", t->uefi ? "q35" : "pc");
	if (t->uefi)
		libvirt_tree_set(os, "firmware", "efi");
	if (t->kernel[0] == '\0') {
		libvirt_tree_set(libvirt_tree_add(os, "boot"), "dev", "hd");
		return;
	}
	(void)libvirt_tree_add_text(os, "kernel", t->kernel);
	if (t->initrd[0] != '\0')
		(void)libvirt_tree_add_text(os, "initrd", t->initrd);
	(void)snprintf(words, sizeof(words), "%s cubefs.name=%s%s%s", XML_WORDS, m->note->name,
		       t->words[0] != '\0' ? " " : "", t->words);
	(void)libvirt_tree_add_text(os, "cmdline", words);
}

static void xml_processors(xmlNodePtr domain, const struct libvirt_machine *m)
{
	char text[24];
	xmlNodePtr memory;

	(void)snprintf(text, sizeof(text), "%" PRIu64, m->note->memory);
	memory = libvirt_tree_add_text(domain, "memory", text);
	libvirt_tree_set(memory, "unit", "bytes");
	(void)snprintf(text, sizeof(text), "%" PRIu32, m->note->cpus);
	(void)libvirt_tree_add_text(domain, "vcpu", text);
	libvirt_tree_set(libvirt_tree_add(domain, "cpu"), "mode", m->kvm ? "host-passthrough" : "maximum");
	libvirt_tree_set(libvirt_tree_add(domain, "clock"), "offset", "utc");
}

static void xml_disk(xmlNodePtr devices, const char *path, const char *target, const char *serial)
{
	xmlNodePtr disk = libvirt_tree_add(devices, "disk"), driver = libvirt_tree_add(disk, "driver"), at;

	libvirt_tree_set(disk, "type", "file");
	libvirt_tree_set(disk, "device", "disk");
	libvirt_tree_set(driver, "name", "qemu");
	libvirt_tree_set(driver, "type", "qcow2");
	libvirt_tree_set(driver, "discard", "unmap");
	libvirt_tree_set(libvirt_tree_add(disk, "source"), "file", path);
	at = libvirt_tree_add(disk, "target");
	libvirt_tree_set(at, "dev", target);
	libvirt_tree_set(at, "bus", "virtio");
	(void)libvirt_tree_add_text(disk, "serial", serial);
}

static void xml_port(xmlNodePtr devices, const char *name, const char *path)
{
	xmlNodePtr port = libvirt_tree_add(devices, "channel"), source, target;

	libvirt_tree_set(port, "type", "unix");
	source = libvirt_tree_add(port, "source");
	libvirt_tree_set(source, "mode", "bind");
	if (path != NULL)
		libvirt_tree_set(source, "path", path);
	target = libvirt_tree_add(port, "target");
	libvirt_tree_set(target, "type", "virtio");
	libvirt_tree_set(target, "name", name);
}

static void xml_console(xmlNodePtr devices, const char *path)
{
	xmlNodePtr console = libvirt_tree_add(devices, "serial"), source;

	libvirt_tree_set(console, "type", "file");
	source = libvirt_tree_add(console, "source");
	libvirt_tree_set(source, "path", path);
	libvirt_tree_set(source, "append", "on");
	libvirt_tree_set(libvirt_tree_add(console, "target"), "port", "0");
}

static void xml_devices(xmlNodePtr domain, const struct libvirt_machine *m)
{
	xmlNodePtr devices = libvirt_tree_add(domain, "devices"), one;

	xml_disk(devices, m->root, "vda", LIBVIRT_ROOT);
	xml_disk(devices, m->workspace, "vdb", LIBVIRT_WORKSPACE);
	xml_port(devices, LIBVIRT_PORT, m->socket);
	xml_port(devices, LIBVIRT_ASKED, m->asked);
	xml_console(devices, m->console);
	if (m->note->net == CUBE_NET_OPEN) {
		one = libvirt_tree_add(devices, "interface");
		libvirt_tree_set(one, "type", "user");
		libvirt_tree_set(libvirt_tree_add(one, "model"), "type", "virtio");
	}
	one = libvirt_tree_add(devices, "rng");
	libvirt_tree_set(one, "model", "virtio");
	libvirt_tree_set(libvirt_tree_add_text(one, "backend", "/dev/urandom"), "model", "random");
	libvirt_tree_set(libvirt_tree_add(devices, "memballoon"), "model", "virtio");
}

static void xml_domain(xmlNodePtr domain, const struct libvirt_machine *m)
{
	char name[LIBVIRT_REF];
	xmlNodePtr features;

	(void)snprintf(name, sizeof(name), LIBVIRT_NAME "%.*s", CUBE_ID_MAX, m->id);
	libvirt_tree_set(domain, "type", m->test ? "test" : m->kvm ? "kvm" : "qemu");
	(void)libvirt_tree_add_text(domain, "name", name);
	if (m->note->uuid[0] != '\0')
		(void)libvirt_tree_add_text(domain, "uuid", m->note->uuid);
	libvirt_note_add(domain, m->note);
	xml_os(domain, m);
	features = libvirt_tree_add(domain, "features");
	(void)libvirt_tree_add(features, "acpi");
	(void)libvirt_tree_add(features, "apic");
	xml_processors(domain, m);
	(void)libvirt_tree_add_text(domain, "on_poweroff", "destroy");
	(void)libvirt_tree_add_text(domain, "on_reboot", "restart");
	(void)libvirt_tree_add_text(domain, "on_crash", "destroy");
	xml_devices(domain, m);
}

int libvirt_xml(const struct libvirt_machine *m, char **ret, struct cube_err *err)
{
	cube_auto(libvirt_tree_auto) xmlDocPtr doc = xmlNewDoc((const xmlChar *)"1.0");
	xmlNodePtr domain = doc != NULL ? xmlNewNode(NULL, (const xmlChar *)"domain") : NULL;
	int rc;

	if (domain == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	(void)xmlDocSetRootElement(doc, domain);
	xml_domain(domain, m);
	rc = libvirt_tree_text(doc, ret);
	if (rc < 0)
		return cube_fail(
			err, rc,
			rc == -EINVAL
				? "sandbox %s: a label has a control character, which libvirt cannot keep"
				: "sandbox %s: out of memory",
			m->id);
	return 0;
}
