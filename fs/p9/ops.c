/* SPDX-License-Identifier: Apache-2.0 */
/* What each message needs, and who carries it out. */
#include "fs/p9/priv.h"

#define FID     P9_NEEDS_FID
#define BOTH    (P9_NEEDS_FID | P9_NEEDS_FID2)
#define IN      (P9_NEEDS_FID | P9_NEEDS_NAME)
#define BETWEEN (BOTH | P9_NEEDS_NAME)

const struct p9_op cube_p9_ops[CUBE_P9_TYPES] = {
	[CUBE_P9_TVERSION] = {P9_ANY_STATE | P9_ALWAYS, cube_p9_op_version},
	[CUBE_P9_TAUTH] = {0, cube_p9_op_auth},
	[CUBE_P9_TATTACH] = {0, cube_p9_op_attach},
	[CUBE_P9_TFLUSH] = {P9_ALWAYS, cube_p9_flush},
	[CUBE_P9_TWALK] = {FID, cube_p9_op_walk},
	[CUBE_P9_TREAD] = {FID, cube_p9_op_read},
	[CUBE_P9_TWRITE] = {FID, cube_p9_op_write},
	[CUBE_P9_TCLUNK] = {P9_ALWAYS, cube_p9_op_clunk},
	[CUBE_P9_TREMOVE] = {P9_ALWAYS, cube_p9_op_remove}, /* the fid is free whatever comes of it */
	/* 9P2000.L */
	[CUBE_P9_TSTATFS] = {FID, cube_p9_op_statfs},
	[CUBE_P9_TLOPEN] = {FID, cube_p9_op_lopen},
	[CUBE_P9_TLCREATE] = {IN, cube_p9_op_lcreate},
	[CUBE_P9_TSYMLINK] = {IN, cube_p9_op_symlink},
	[CUBE_P9_TMKNOD] = {IN, cube_p9_op_mknod},
	[CUBE_P9_TRENAME] = {BETWEEN, cube_p9_op_rename},
	[CUBE_P9_TREADLINK] = {FID, cube_p9_op_readlink},
	[CUBE_P9_TGETATTR] = {FID, cube_p9_op_getattr},
	[CUBE_P9_TSETATTR] = {FID, cube_p9_op_setattr},
	[CUBE_P9_TXATTRWALK] = {FID, cube_p9_op_xattrwalk},
	[CUBE_P9_TXATTRCREATE] = {FID, cube_p9_op_xattrcreate},
	[CUBE_P9_TREADDIR] = {FID, cube_p9_op_readdir},
	[CUBE_P9_TFSYNC] = {FID, cube_p9_op_fsync},
	[CUBE_P9_TLOCK] = {FID, cube_p9_op_lock},
	[CUBE_P9_TGETLOCK] = {FID, cube_p9_op_getlock},
	[CUBE_P9_TLINK] = {BETWEEN, cube_p9_op_link},
	[CUBE_P9_TMKDIR] = {IN, cube_p9_op_mkdir},
	[CUBE_P9_TRENAMEAT] = {BETWEEN | P9_NEEDS_NAME2, cube_p9_op_renameat},
	[CUBE_P9_TUNLINKAT] = {IN, cube_p9_op_unlinkat},
	/* the older ones */
	[CUBE_P9_TOPEN] = {FID, cube_p9_op_open},
	[CUBE_P9_TCREATE] = {IN, cube_p9_op_create},
	[CUBE_P9_TSTAT] = {FID, cube_p9_op_stat},
	[CUBE_P9_TWSTAT] = {FID, cube_p9_op_wstat},
};
