/* SPDX-License-Identifier: Apache-2.0 */
/* The part of note.c that writes. */
#ifndef CUBEFS_BACKENDS_LIBVIRT_NOTE_H
#define CUBEFS_BACKENDS_LIBVIRT_NOTE_H

#include "backends/libvirt/libvirt_priv.h"
#include "backends/libvirt/tree.h"

/* Adds the note to a domain's description. */
void libvirt_note_add(xmlNodePtr domain, const struct libvirt_note *note);

#endif
