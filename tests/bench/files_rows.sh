# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The rows of files.sh: each is run in a directory of the place that is measured, prints the microseconds that its work
# took, and leaves there what rows behind it work on.

# shellcheck disable=SC2034 # used by places.sh
WHAT=(
	[seqwrite]="write $MIB MiB" [seqread]="read $MIB MiB" [randread]='4 KiB random read' [randwrite]='4 KiB random write'
	[mmap]='4 KiB random, mmap' [create]="create $SMALL files" [stat]="stat $SMALL files" [read]="read $SMALL files"
	[unlink]="unlink $SMALL files" [clone]="git clone, $REPO files" [status]='git status, warm' [untar]="tar x, $TAR files"
	[find]='find, warm' [rg]='rg, warm' [make]='make -j2' [npm]="npm install $NPM" [sqlite]='sqlite, WAL'
	[bigin]="copy $MIB MiB in" [bigout]="copy $MIB MiB out" [treein]="copy $REPO files in" [treeout]="copy $REPO files out"
)
# Those whose program nobody installs for it.
# shellcheck disable=SC2034 # used by places.sh
PROGRAM=([npm]=npm)
# The longest time, as a multiple of native's.
# shellcheck disable=SC2034 # used by places.sh
LIMIT=(
	[seqwrite]=1.18 [seqread]=1.18 [randread]=1.2 [randwrite]=1.2 [mmap]=1.2 [create]=4 [stat]=2 [read]=- [unlink]=4
	[clone]=4 [status]=2 [untar]=4 [find]=2 [rg]=2 [make]=- [npm]=4 [sqlite]=-
	[bigin]=1.18 [bigout]=1.18 [treein]=4 [treeout]=4
)
# Those that an engine's `cp` does too.
# shellcheck disable=SC2034 # used by places.sh
COPIES=([bigin]=yes [bigout]=yes [treein]=yes [treeout]=yes)

# ---- data ----

fio_us() { # FIO-ARG...: of the work alone, without fio's own start
	fio --name=x --filename=large --minimal --thread "$@" | awk -F ';' '{ print ($9 + $50) * 1000 }'
}

files_seqwrite() {
	rm -f large
	fio_us --rw=write --bs=1M --size="${MIB}M" --ioengine=psync --invalidate=0
}

large() {
	[ -f large ] || files_seqwrite >/dev/null
}

files_seqread() {
	large
	cat large >/dev/null
	fio_us --rw=read --bs=1M --size="${MIB}M" --ioengine=psync --invalidate=0
}

files_randread() {
	large
	fio_us --rw=randread --bs=4k --size="${MIB}M" --io_size="$((MIB / 8 + 1))M" --ioengine=psync --invalidate=0
}

files_randwrite() {
	large
	fio_us --rw=randwrite --bs=4k --size="${MIB}M" --io_size="$((MIB / 8 + 1))M" --ioengine=psync --invalidate=0
}

files_mmap() {
	large
	fio_us --rw=randrw --bs=4k --size="${MIB}M" --io_size="$((MIB / 8 + 1))M" --ioengine=mmap --invalidate=0
}

# ---- small files ----

small_of() { # WHAT
	"$BUILD/tests/bench/bench-files" "$1" . "$SMALL"
}

small() {
	[ -f "small-$((SMALL - 1))" ] || small_of create >/dev/null
}

files_create() {
	find . -maxdepth 1 -name 'small-*' -delete
	small_of create
}

files_stat() {
	small
	small_of stat >/dev/null && small_of stat
}

files_read() {
	small
	small_of read >/dev/null && small_of read
}

files_unlink() {
	small
	small_of unlink
}

# ---- trees ----

# A tree of that many files, the same in every run: names, depths and sizes as sources have them.
tree_of() { # DIR COUNT
	python3 - "$1" "$2" <<'PY'
import os, random, sys
root, count = sys.argv[1], int(sys.argv[2])
rnd = random.Random(1)
for i in range(count):
    d = os.path.join(root, f'd{i % 40}', f'e{i // 40 % 12}')
    if i < 480:
        os.makedirs(d, exist_ok=True)
    with open(os.path.join(d, f'file{i}.c'), 'w') as f:
        f.write(f'/* {i} */\n' + 'int value(int x) { return x * 3; }\n' * rnd.randint(5, 200))
PY
}

repo() {
	[ ! -d "$WORK/repo" ] || return 0
	mkdir "$WORK/repo"
	tree_of "$WORK/repo" "$REPO"
	git -C "$WORK/repo" init -q
	git -C "$WORK/repo" add -A
	git -C "$WORK/repo" -c user.name=bench -c user.email=bench@localhost commit -qm all
}

git_here() {
	git -c safe.directory='*' "$@"
}

files_clone() {
	repo
	rm -rf clone
	timed git_here clone -q "$WORK/repo" clone
}

files_status() {
	[ -d clone ] || files_clone >/dev/null
	warm git_here -C clone status
}

archive() {
	[ ! -f "$WORK/tree.tar" ] || return 0
	mkdir "$WORK/tree"
	tree_of "$WORK/tree/tree" "$TAR"
	tar -C "$WORK/tree" -cf "$WORK/tree.tar" tree
	rm -rf "$WORK/tree"
}

files_untar() {
	archive
	rm -rf tree
	timed tar xf "$WORK/tree.tar"
}

tree() {
	[ -d tree ] || files_untar >/dev/null
}

files_find() {
	tree
	warm find tree -type f -size +1000k
}

nothing_found() { # grep's kin end with 1 then
	rg "$@"
	[ $? -eq 1 ]
}

files_rg() {
	tree
	warm nothing_found -j 2 'no such word' tree
}

# ---- programs ----

# A real project in C: the agent of this one, by make.
files_make() {
	rm -rf make
	mkdir make
	cp -r "$ROOT"/{CMakeLists.txt,CMakePresets.json,cmake,backends,ctl,fs,docs,tests} make/ &&
		cmake -S make -B make/build -G 'Unix Makefiles' -DCUBEFS_TESTS=OFF -DCMAKE_C_COMPILER_LAUNCHER= >/dev/null &&
		timed command make -s -C make/build -j2 cube-init # `make` alone is a function of lib.sh
}

# From npm's own cache, which the first run fills.
files_npm() {
	rm -rf npm
	mkdir npm
	(cd npm && npm init -y >/dev/null) || return
	if [ ! -d "$WORK/npm-cache" ]; then
		mkdir "$WORK/npm-first"
		npm install --prefix "$WORK/npm-first" --cache "$WORK/npm-cache" --no-audit --no-fund "$NPM" >/dev/null || return
	fi
	timed npm install --prefix npm --cache "$WORK/npm-cache" --offline --no-audit --no-fund "$NPM"
}

sqlite_work() {
	{
		echo 'PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT);'
		for ((i = 0; i < 2000; i++)); do echo "INSERT INTO t VALUES($i, 'value $i');"; done
		echo 'SELECT count(*) FROM t;'
	} >"$WORK/work.sql"
}

files_sqlite() {
	[ -f "$WORK/work.sql" ] || sqlite_work
	rm -f db db-*
	timed sqlite3 db <"$WORK/work.sql"
}

# ---- copies, in and out ----

# In a container each goes to a name of its own: there is nothing inside that removes it.
copy_in() { # PLACE SOURCE NAME
	rm -rf "${3:?}"
	if [ "$1" = docker ]; then
		IN[$3]=/$3.${EPOCHREALTIME/./}
		timed docker_here cp "$2" "sleeper:${IN[$3]}"
	else
		timed cp -r "$2" "$3"
	fi
}

copy_out() { # PLACE NAME
	rm -rf "$WORK/out"
	if [ "$1" = docker ]; then
		timed docker_here cp "sleeper:${IN[$2]}" "$WORK/out"
	else
		timed cp -r "$2" "$WORK/out"
	fi
}

declare -A IN

big() {
	[ -f "$WORK/big" ] || dd if=/dev/zero of="$WORK/big" bs=1M count="$MIB" status=none
}

files_bigin() {
	big
	copy_in "$1" "$WORK/big" big
}

files_bigout() {
	[ -e big ] || [ -n "${IN[big]-}" ] || files_bigin "$1" >/dev/null
	copy_out "$1" big
}

files_treein() {
	repo
	copy_in "$1" "$WORK/repo" treein
}

files_treeout() {
	[ -e treein ] || [ -n "${IN[treein]-}" ] || files_treein "$1" >/dev/null
	copy_out "$1" treein
}
