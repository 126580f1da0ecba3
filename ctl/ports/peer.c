/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end: the kernel's table of sockets, asked by netlink (sock_diag(7)). */
#include "ctl/ports/peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/macros.h"

struct peer_end {
	unsigned char address[16];
	in_port_t port;
};

static bool peer_end(const struct sockaddr_storage *from, struct peer_end *to)
{
	*to = (struct peer_end){.port = 0};
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)from;

		memcpy(to->address, &a->sin_addr, sizeof(a->sin_addr));
		to->port = a->sin_port;
		return ntohl(a->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)from;

		memcpy(to->address, &a->sin6_addr, sizeof(a->sin6_addr));
		to->port = a->sin6_port;
		return IN6_IS_ADDR_LOOPBACK(&a->sin6_addr);
	}
	return false;
}

static bool peer_ask(int nl, int family, const struct peer_end *from, const struct peer_end *to)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} q = {.head = {.nlmsg_len = sizeof(q),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST},
	       .req = {.sdiag_family = (uint8_t)family,
		       .sdiag_protocol = IPPROTO_TCP,
		       .idiag_states = UINT32_MAX,
		       .id = {.idiag_sport = from->port,
			      .idiag_dport = to->port,
			      .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};

	memcpy(q.req.id.idiag_src, from->address, sizeof(from->address));
	memcpy(q.req.id.idiag_dst, to->address, sizeof(to->address));
	return send(nl, &q, sizeof(q), MSG_DONTWAIT) == (ssize_t)sizeof(q);
}

/* One answer, which the kernel gives while it is asked. */
static bool peer_uid(int nl, uid_t *ret)
{
	union {
		struct nlmsghdr head;
		char space[1024];
	} answer;
	struct inet_diag_msg msg;
	ssize_t n = recv(nl, &answer, sizeof(answer), MSG_DONTWAIT);

	if (n < (ssize_t)NLMSG_LENGTH(sizeof(msg)) || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	memcpy(&msg, NLMSG_DATA(&answer.head), sizeof(msg));
	*ret = msg.idiag_uid;
	/* Closed and given up by its process already: then it says 0. */
	return msg.idiag_inode != 0;
}

bool cube_peer_is_own(int fd)
{
	struct sockaddr_storage near = {.ss_family = AF_UNSPEC}, far = near;
	socklen_t near_len = sizeof(near), far_len = sizeof(far);
	cube_auto_fd nl = -1;
	struct peer_end a, b;
	uid_t uid;

	if (getsockname(fd, (struct sockaddr *)&near, &near_len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&far, &far_len) < 0 || !peer_end(&near, &a) ||
	    !peer_end(&far, &b))
		return false;
	nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	return nl >= 0 && peer_ask(nl, near.ss_family, &b, &a) && peer_uid(nl, &uid) && uid == geteuid();
}
